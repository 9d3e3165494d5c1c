//! What was freed in the order of one stream, and can be had again in it at once.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::memory::registry::Slot;
use crate::stream::Stream;

const BUCKETS: usize = 64;

/// A slot that was freed at a time of its stream ([`Stream::now`]).
pub(super) struct Freed {
    pub slot: Slot,
    pub time: u64,
}

/// The freed slots of one stream in one pool. The lock is the stream's own users' only, but for another stream's search when
/// all else is used up.
pub(super) struct Cache {
    pub stream: Arc<Stream>,
    bins: Mutex<Bins>,
}

/// By size, the last one freed at the end. Sizes share buckets, so they are compared.
struct Bins {
    buckets: [Vec<Freed>; BUCKETS],
    count: usize,
    /// Out of the pool's list: whatever comes now must go elsewhere.
    retired: bool,
}

fn bucket(size: u64) -> usize {
    (size.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl Cache {
    pub fn new(stream: Arc<Stream>) -> Self {
        Self {
            stream,
            bins: Mutex::new(Bins {
                buckets: [const { Vec::new() }; BUCKETS],
                count: 0,
                retired: false,
            }),
        }
    }

    fn bins(&self) -> MutexGuard<'_, Bins> {
        self.bins.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The last freed slot of exactly `size` bytes.
    pub fn take(&self, size: u64) -> Option<Slot> {
        let mut bins = self.bins();
        let freed = &mut bins.buckets[bucket(size)];
        let index = freed.iter().rposition(|freed| freed.slot.size() == size)?;
        let slot = freed.remove(index).slot;
        bins.count -= 1;
        Some(slot)
    }

    /// Keeps a slot that was freed at `time`; gives it back when the cache is retired.
    pub fn put(&self, slot: Slot, time: u64) -> Result<(), Slot> {
        let mut bins = self.bins();
        if bins.retired {
            return Err(slot);
        }
        bins.buckets[bucket(slot.size())].push(Freed { slot, time });
        bins.count += 1;
        Ok(())
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
