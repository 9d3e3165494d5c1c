//! What was freed in the order of one stream, and can be had again in it at once.

use std::sync::Arc;

use crate::lock::{Guard, Lock};
use crate::memory::REGISTRY;
use crate::memory::registry::{Ids, Slot};
use crate::stream::Stream;

const BUCKETS: usize = 64;

/// A slot that was freed at a time of its stream ([`Stream::now`]).
pub(super) struct Freed {
    pub slot: Slot,
    pub time: u64,
}

/// What [`Cache::take`] gives.
pub(super) struct Taken {
    /// The last freed slot of the size, if there is one.
    pub slot: Option<Slot>,
    /// The id of what becomes of it, or of another slot.
    pub id: u64,
    /// How much of the size the pool's count of used bytes lacks.
    pub uncounted: u64,
}

/// The freed slots of one stream in one pool. The lock is the stream's own users' only, but for another stream's search when
/// all else is used up. Threads with streams of their own write no common word of pool or registry while they allocate and free.
pub(super) struct Cache {
    pub stream: Arc<Stream>,
    bins: Lock<Bins>,
}

/// By size, the last one freed at the end. Sizes share buckets, so they are compared.
struct Bins {
    buckets: [Vec<Freed>; BUCKETS],
    count: usize,
    /// Bytes that were freed, but that the pool still counts as used: the next allocations need not be counted.
    credit: u64,
    ids: Ids,
    /// Out of the pool's list: whatever comes now must go elsewhere.
    retired: bool,
}

fn bucket(size: u64) -> usize {
    (size.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl Bins {
    fn put(&mut self, slot: Slot, time: u64) -> Result<(), Slot> {
        if self.retired {
            return Err(slot);
        }
        self.buckets[bucket(slot.size())].push(Freed { slot, time });
        self.count += 1;
        Ok(())
    }
}

impl Cache {
    pub fn new(stream: Arc<Stream>) -> Self {
        Self {
            stream,
            bins: Lock::new(Bins {
                buckets: [const { Vec::new() }; BUCKETS],
                count: 0,
                credit: 0,
                ids: Ids::default(),
                retired: false,
            }),
        }
    }

    #[inline]
    fn bins(&self) -> Guard<'_, Bins> {
        self.bins.lock()
    }

    /// The last freed slot of exactly `size` bytes, and what the allocation of that size needs besides.
    #[inline]
    pub fn take(&self, size: u64) -> Taken {
        let bins = &mut *self.bins();
        let freed = &mut bins.buckets[bucket(size)];
        let slot = match freed.pop_if(|last| last.slot.size() == size) {
            Some(last) => Some(last),
            // Sizes that share the bucket lie behind it.
            None => freed
                .iter()
                .rposition(|freed| freed.slot.size() == size)
                .map(|index| freed.remove(index)),
        };
        bins.count -= usize::from(slot.is_some());
        let counted = size.min(bins.credit);
        bins.credit -= counted;
        Taken {
            slot: slot.map(|freed| freed.slot),
            id: REGISTRY.id_from(&mut bins.ids),
            uncounted: size - counted,
        }
    }

    /// Keeps a slot that the client frees at `time`; gives it back when the cache is retired. The pool goes on counting its bytes as
    /// used: see [`Cache::take_credit`].
    #[inline]
    pub fn free(&self, slot: Slot, time: u64) -> Result<(), Slot> {
        let mut bins = self.bins();
        let size = slot.size();
        bins.put(slot, time)?;
        bins.credit += size;
        Ok(())
    }

    /// Keeps a slot that nobody uses, as of `time`; gives it back when the cache is retired.
    pub fn put(&self, slot: Slot, time: u64) -> Result<(), Slot> {
        self.bins().put(slot, time)
    }

    /// Bytes that the pool counts as used and that are not; from here on the pool knows.
    pub fn take_credit(&self) -> u64 {
        std::mem::take(&mut self.bins().credit)
    }

    /// Holds nothing.
    pub fn is_empty(&self) -> bool {
        self.bins().count == 0
    }

    /// The smallest slot of at least `size` bytes that `usable` takes by its time.
    pub fn take_larger(&self, size: u64, usable: impl Fn(u64) -> bool) -> Option<Freed> {
        let mut bins = self.bins();
        let mut best: Option<(u64, usize, usize)> = None;
        for (at, bucket) in bins.buckets.iter().enumerate() {
            for (index, freed) in bucket.iter().enumerate() {
                let found = (freed.slot.size(), at, index);
                if found.0 >= size && best.is_none_or(|best| found.0 < best.0) && usable(freed.time) {
                    best = Some(found);
                }
            }
        }
        let (_, at, index) = best?;
        bins.count -= 1;
        Some(bins.buckets[at].swap_remove(index))
    }

    /// Takes out all slots that the stream has passed; the second result is false when the cache is of no use any more.
    pub fn harvest(&self) -> (Vec<Slot>, bool) {
        let gone = self.stream.is_gone();
        let mut bins = self.bins();
        let mut out = Vec::new();
        if bins.count > 0 {
            // Times only grow: what one is past, earlier ones are.
            let mut past = None;
            for at in 0..BUCKETS {
                let kept = std::mem::take(&mut bins.buckets[at]);
                for freed in kept {
                    let over = past.is_some_and(|past| freed.time <= past) || self.stream.is_past(freed.time);
                    if over {
                        past = past.max(Some(freed.time));
                        out.push(freed.slot);
                    } else {
                        bins.buckets[at].push(freed);
                    }
                }
            }
            bins.count -= out.len();
        }
        bins.retired |= gone && bins.count == 0;
        (out, !bins.retired)
    }

    /// Takes out everything, passed or not, and retires the cache.
    pub fn end(&self) -> Vec<Slot> {
        let mut bins = self.bins();
        bins.retired = true;
        bins.count = 0;
        let buckets = std::mem::replace(&mut bins.buckets, [const { Vec::new() }; BUCKETS]);
        buckets.into_iter().flatten().map(|freed| freed.slot).collect()
    }
}
