//! The memory that a pool holds: blocks of ROCr, and the parts of them that nobody uses.

use core::ptr::NonNull;
use std::collections::{BTreeMap, BTreeSet};

use super::segment::Segment;
use crate::abi::Result;
use crate::device::Context;
use crate::memory::registry::Slot;
use crate::memory::{REGISTRY, unexpected_range};

/// Segments, and the extents in them that are free for any stream.
///
/// ```text
/// segment   [ slot given out | slot in a stream's cache | free extent          | slot ... | free extent ]
/// ```
///
/// Free extents are merged with their neighbours in the same segment, and are in no table of the registry; every slot is.
#[derive(Default)]
pub(super) struct Arena {
    segments: BTreeMap<u64, Segment>,
    /// Size by start.
    free: BTreeMap<u64, u64>,
    /// The same as (size, start).
    by_size: BTreeSet<(u64, u64)>,
}

impl Arena {
    /// Adds a segment, all of which is free.
    pub fn add(&mut self, segment: Segment) {
        let (base, size) = (segment.base(), segment.size());
        self.segments.insert(base, segment);
        self.insert(base, size);
    }

    /// The segment that holds an address.
    pub fn segment(&self, address: u64) -> Option<&Segment> {
        let (_, segment) = self.segments.range(..=address).next_back()?;
        (address - segment.base() < segment.size()).then_some(segment)
    }

    /// All segments.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.values()
    }

    fn insert(&mut self, base: u64, size: u64) {
        self.free.insert(base, size);
        self.by_size.insert((size, base));
    }

    fn take_out(&mut self, base: u64, size: u64) {
        self.free.remove(&base);
        self.by_size.remove(&(size, base));
    }

    /// A slot of `size` bytes from the smallest extent that has them; `None` when there is none.
    ///
    /// # Errors
    /// UNKNOWN when the registry refuses the range, which no program can cause.
    pub fn carve(&mut self, size: u64, context: &'static Context) -> Result<Option<Slot>> {
        let Some(&(extent, base)) = self.by_size.range((size, 0)..).next() else {
            return Ok(None);
        };
        let slot = reserve(base, size, context)?;
        self.take_out(base, extent);
        if extent > size {
            self.insert(base + size, extent - size);
        }
        Ok(Some(slot))
    }

    /// Takes a slot back that no stream uses any more.
    pub fn give_back(&mut self, slot: Slot) {
        let (mut base, mut size) = (slot.base(), slot.size());
        REGISTRY.unreserve(slot);
        let Some((start, end)) = self
            .segment(base)
            .map(|segment| (segment.base(), segment.base() + segment.size()))
        else {
            return;
        };
        if base + size < end
            && let Some(&next) = self.free.get(&(base + size))
        {
            self.take_out(base + size, next);
            size += next;
        }
        if base > start
            && let Some((&before, &length)) = self.free.range(..base).next_back()
            && before + length == base
        {
            self.take_out(before, length);
            base = before;
            size += length;
        }
        self.insert(base, size);
    }

    /// Takes out segments that are free as a whole, largest addresses first, while at least `keep` bytes stay. The caller
    /// ends them, without a lock.
    pub fn release(&mut self, keep: u64) -> Vec<Segment> {
        let mut reserved: u64 = self.segments.values().map(Segment::size).sum();
        let whole: Vec<u64> = self
            .segments
            .values()
            .rev()
            .filter(|segment| self.free.get(&segment.base()) == Some(&segment.size()))
            .map(Segment::base)
            .collect();
        let mut released = Vec::new();
        for base in whole {
            let Some(segment) = self.segments.get(&base) else {
                continue;
            };
            let size = segment.size();
            if reserved - size < keep {
                continue;
            }
            reserved -= size;
            self.take_out(base, size);
            released.extend(self.segments.remove(&base));
        }
        released
    }

    /// Takes out everything: the memory's last user has ended.
    pub fn release_all(&mut self) -> Vec<Segment> {
        self.free.clear();
        self.by_size.clear();
        std::mem::take(&mut self.segments).into_values().collect()
    }
}

/// Cuts a slot: the first `size` bytes, and the rest if there is one.
pub(super) fn split(slot: Slot, size: u64, context: &'static Context) -> Result<(Slot, Option<Slot>)> {
    if slot.size() == size {
        return Ok((slot, None));
    }
    let (base, whole) = (slot.base(), slot.size());
    REGISTRY.unreserve(slot);
    let rest = reserve(base + size, whole - size, context)?;
    Ok((reserve(base, size, context)?, Some(rest)))
}

fn reserve(base: u64, size: u64, context: &'static Context) -> Result<Slot> {
    REGISTRY
        .reserve(base, size, context)
        .map_err(|conflict| unexpected_range(conflict, base, size))
}

/// An address as a pointer for HSA.
pub(super) fn pointer(address: u64) -> Option<NonNull<u8>> {
    crate::memory::pointer_to(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn arena(base: u64) -> Arena {
        let mut arena = Arena::default();
        arena.add(Segment::for_tests(base, 32 * MIB));
        arena
    }

    #[test]
    fn pieces_lie_one_behind_the_other_and_merge_again() {
        let context = Context::for_tests();
        let base = 0x7a00_0000_0000;
        let mut arena = arena(base);
        let slots: Vec<Slot> = [512, 512, 4096, MIB]
            .map(|size| arena.carve(size, context).unwrap().unwrap())
            .into();
        let starts: Vec<u64> = slots.iter().map(|slot| slot.base() - base).collect();
        assert_eq!(starts, [0, 512, 1024, 5120]);
        assert!(arena.release(0).is_empty(), "a segment in use stays");
        assert!(arena.carve(32 * MIB, context).unwrap().is_none());
        // In an order that merges with neither, one and both neighbours.
        for index in [1, 3, 0, 2] {
            let slot = &slots[index];
            arena.give_back(Slot::clone_for_tests(slot));
        }
        assert_eq!(arena.free.len(), 1);
        assert_eq!(arena.by_size.len(), 1);
        assert!(arena.release(1).is_empty(), "what is to be kept is kept");
        assert_eq!(arena.release(0).len(), 1);
        assert!(arena.carve(512, context).unwrap().is_none());
    }

    #[test]
    fn neighbouring_segments_do_not_merge() {
        let context = Context::for_tests();
        let base = 0x7a10_0000_0000;
        let mut arena = arena(base);
        arena.add(Segment::for_tests(base + 32 * MIB, 32 * MIB));
        let first = arena.carve(32 * MIB, context).unwrap().unwrap();
        let second = arena.carve(32 * MIB, context).unwrap().unwrap();
        arena.give_back(second);
        arena.give_back(first);
        assert_eq!(arena.free.len(), 2);
        assert_eq!(arena.release(32 * MIB).len(), 1);
    }

    #[test]
    fn the_smallest_extent_that_fits_is_used() {
        let context = Context::for_tests();
        let base = 0x7a20_0000_0000;
        let mut arena = arena(base);
        let hole = arena.carve(4096, context).unwrap().unwrap();
        let wall = arena.carve(512, context).unwrap().unwrap();
        arena.give_back(hole);
        let again = arena.carve(1024, context).unwrap().unwrap();
        assert_eq!(again.base(), base);
        let (front, rest) = split(again, 512, context).unwrap();
        let rest = rest.unwrap();
        assert_eq!(
            (front.base(), front.size(), rest.base(), rest.size()),
            (base, 512, base + 512, 512)
        );
        for slot in [front, rest, wall] {
            arena.give_back(slot);
        }
        assert_eq!(arena.release_all().len(), 1);
    }
}
