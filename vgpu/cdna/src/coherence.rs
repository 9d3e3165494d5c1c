//! Caches that keep no more coherence than the memory model promises: for finding missing fences.
//!
//! ```text
//! wave -> L1 of its work-group -> L2 of the GPU -> memory        coarse-grained
//! wave -> L1 of its work-group ------------------> memory        fine-grained
//! ```
//!
//! The hardware's caches have a size, and a line that is evicted reaches memory, or is read anew, early. These never evict: a
//! store to coarse-grained memory reaches memory only at a release of system scope, a load may give what was there at the
//! first load since the last acquire. Nothing is more stale than the model allows:
//!
//! | what | L1 | L2 |
//! |---|---|---|
//! | work-group starts | empty | |
//! | load | hit or fill; gfx90a `glc`, gfx942 `sc1`: passed by | hit or fill |
//! | store, atomic | bytes dropped | written, dirty |
//! | `buffer_wbinvl1`, `buffer_wbinvl1_vol`; `buffer_inv sc1` | emptied | |
//! | `buffer_invl2`; `buffer_inv sc0 sc1` | emptied by the latter | clean bytes dropped |
//! | `buffer_wbl2` (gfx942: `sc0 sc1`) | | dirty bytes to memory |
//! | packet's acquire fence, system scope | | clean bytes dropped |
//! | packet's release fence, system scope | | dirty bytes to memory |
//!
//! Copy engines, the host and other GPUs see memory. Other processes on the same GPU have caches of their own, stricter than the
//! card, where an agent's L2 is one for all. Scalar loads and the packet processor pass the L1 by; instruction fetch reads memory.
//!
//! Sources: LLVM's "User Guide for AMDGPU Backend", sections Memory Model gfx90a and gfx942.

use std::{
    cell::UnsafeCell,
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use crate::exec::access::{load8, load32, store8, store32};

/// Bytes of a line, of L2 as of MI200's.
const LINE: usize = 128;

#[repr(align(128))]
struct Bytes(UnsafeCell<[u8; LINE]>);

/// A line: which of its bytes are those of the level below, and which are newer.
struct Line {
    bytes: Box<Bytes>,
    valid: u128,
    dirty: u128,
    /// The acquire that `valid` belongs to.
    epoch: u64,
}

impl Line {
    fn new() -> Line {
        Line {
            bytes: Box::new(Bytes(UnsafeCell::new([0; LINE]))),
            valid: 0,
            dirty: 0,
            epoch: 0,
        }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.bytes.0.get().cast::<u8>().wrapping_add(offset)
    }

    /// Takes the bytes of `want` that are neither valid nor dirty from `below`, the host address of the line's first.
    ///
    /// # Safety
    /// The bytes of `want` can be read there.
    unsafe fn fill(&mut self, below: *const u8, want: u128) {
        let missing = want & !self.valid & !self.dirty;
        // SAFETY: the caller's promise; the line has as many bytes.
        unsafe { copy(below, self.at(0), missing) };
        self.valid |= missing;
    }
}

/// Copies the bytes of `mask` of a line; whole dwords at once, so that nobody sees half of one.
///
/// # Safety
/// They can be read at `from` and written at `to`, both aligned to four.
unsafe fn copy(from: *const u8, to: *mut u8, mask: u128) {
    for dword in 0..LINE / 4 {
        let at = 4 * dword;
        // SAFETY: the caller's promise.
        unsafe {
            match mask >> at & 15 {
                0 => {}
                15 => store32(to.add(at), load32(from.add(at))),
                some => (0..4)
                    .filter(|i| some >> i & 1 != 0)
                    .for_each(|i| store8(to.add(at + i), load8(from.add(at + i)))),
            }
        }
    }
}

/// `count` ones from bit `first`.
fn ones(first: usize, count: usize) -> u128 {
    let all = if count >= LINE { u128::MAX } else { (1 << count) - 1 };
    all << first
}

/// A run of host memory: first byte and the one past the last.
pub type Bounds = (usize, usize);

/// The bytes of the line at host address `line` that lie in `bounds`.
fn inside(line: usize, bounds: Bounds) -> u128 {
    let first = bounds.0.saturating_sub(line).min(LINE);
    let end = bounds.1.saturating_sub(line).min(LINE);
    if end > first { ones(first, end - first) } else { 0 }
}

#[derive(Default)]
struct Lines {
    by_address: HashMap<usize, Line>,
    /// Addresses of lines that have dirty bytes, some perhaps twice.
    dirty: Vec<usize>,
    epoch: u64,
}

impl Lines {
    fn write_back(&mut self) {
        for address in std::mem::take(&mut self.dirty) {
            if let Some(line) = self.by_address.get_mut(&address) {
                // SAFETY: dirty bytes belong to a mapping that was writable when they were stored, and lines are discarded
                // before a mapping goes away.
                unsafe { copy(line.at(0), address as *mut u8, line.dirty) };
                line.valid |= line.dirty;
                line.dirty = 0;
            }
        }
    }
}

/// The L2 of one GPU for one process.
#[derive(Default)]
pub struct Cache {
    lines: Mutex<Lines>,
    /// Held for reading while an instruction uses places that it was given, for writing while lines change under them.
    places: RwLock<()>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl Cache {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the places that [`Cache::place`] returns.
    pub fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the `len` bytes at host address `host`, in the mapping `bounds`, are to be read or written; `None` where they span
    /// lines. Good while [`Cache::hold`]'s guard is.
    pub fn place(&self, host: usize, len: usize, write: bool, bounds: Bounds) -> Option<*mut u8> {
        let (address, offset) = (host & !(LINE - 1), host & (LINE - 1));
        if offset + len > LINE {
            return None;
        }
        let mut lines = self.lines();
        let epoch = lines.epoch;
        let line = lines.by_address.entry(address).or_insert_with(Line::new);
        if line.epoch != epoch {
            line.epoch = epoch;
            line.valid = 0;
        }
        // SAFETY: the mapping's bytes can be read.
        unsafe { line.fill(address as *const u8, inside(address, bounds)) };
        let place = line.at(offset);
        if write {
            let clean = line.dirty == 0;
            line.dirty |= ones(offset, len);
            if clean {
                lines.dirty.push(address);
            }
        }
        Some(place)
    }

    /// A release of system scope: dirty bytes go to memory.
    pub fn write_back(&self) {
        let _places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        self.lines().write_back();
    }

    /// An acquire of system scope: clean bytes are dropped.
    pub fn invalidate(&self) {
        let _places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        self.lines().epoch += 1;
    }

    /// A mapping goes away: dirty bytes go to memory, and the range's lines are dropped.
    pub fn discard(&self, (start, end): Bounds) {
        let _places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let mut lines = self.lines();
        lines.write_back();
        lines
            .by_address
            .retain(|address, _| address + LINE <= start || *address >= end);
    }
}

/// The L1 of one work-group. Its lines are copies of what is below.
#[derive(Default)]
pub struct FirstLevel {
    lines: HashMap<usize, Line>,
}

impl FirstLevel {
    /// Where a load of `len` bytes finds them: in a line filled through `below`, which gives the place of bytes one level down.
    /// `None` where they span lines.
    pub fn load(
        &mut self,
        host: usize,
        len: usize,
        bounds: Bounds,
        below: impl Fn(usize, usize) -> Option<*mut u8>,
    ) -> Option<*mut u8> {
        let (address, offset) = (host & !(LINE - 1), host & (LINE - 1));
        if offset + len > LINE {
            return None;
        }
        let want = inside(address, bounds);
        let line = self.lines.entry(address).or_insert_with(Line::new);
        if want & !line.valid != 0 {
            let first = want.trailing_zeros() as usize;
            let count = (want >> first).trailing_ones() as usize;
            let from = below(address + first, count)?.wrapping_sub(first);
            // SAFETY: `below` found the bytes of `want`.
            unsafe { line.fill(from, want) };
        }
        Some(line.at(offset))
    }

    /// The work-group wrote these bytes below: its next load finds them there.
    pub fn drop_bytes(&mut self, host: usize, len: usize) {
        let (address, offset) = (host & !(LINE - 1), host & (LINE - 1));
        for (address, offset, len) in [
            (address, offset, len.min(LINE - offset)),
            (address + LINE, 0, (offset + len).saturating_sub(LINE)),
        ] {
            if let Some(line) = self.lines.get_mut(&address) {
                line.valid &= !ones(offset, len);
            }
        }
    }

    /// An acquire wider than the work-group.
    pub fn clear(&mut self) {
        for line in self.lines.values_mut() {
            line.valid = 0;
        }
    }

    /// The work-group has ended.
    pub fn end(&mut self) {
        self.lines.clear();
    }
}

// SAFETY: the bytes of lines are touched through the atomics of `exec::access` only, as memory is.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(128))]
    struct Aligned([u8; 512]);

    fn bounds(memory: &Aligned) -> Bounds {
        let start = memory.0.as_ptr() as usize;
        (start, start + 512)
    }

    #[test]
    fn stores_reach_memory_at_the_release_and_loads_see_it_after_the_acquire() {
        let mut memory = Box::new(Aligned([7; 512]));
        let at = memory.0.as_mut_ptr();
        let bounds = bounds(&memory);
        let cache = Cache::default();
        let host = at as usize + 8;
        let place = cache.place(host, 4, true, bounds).expect("in one line");
        // SAFETY: a place of four bytes; `at` has 512.
        unsafe {
            assert_eq!(load32(place), 0x0707_0707);
            store32(place, 0x1111_1111);
            assert_eq!(load32(at.add(8)), 0x0707_0707, "not released");
            // The host writes beside it.
            store32(at.add(16), 0x2222_2222);
            let other = cache.place(host + 8, 4, false, bounds).expect("in one line");
            assert_eq!(load32(other), 0x0707_0707, "not acquired");
            cache.write_back();
            assert_eq!(load32(at.add(8)), 0x1111_1111);
            assert_eq!(load32(at.add(16)), 0x2222_2222, "clean bytes are not written");
            cache.invalidate();
            let other = cache.place(host + 8, 4, false, bounds).expect("in one line");
            assert_eq!(load32(other), 0x2222_2222);
        }
    }

    #[test]
    fn dirty_bytes_outlive_an_acquire() {
        let mut memory = Box::new(Aligned([0; 512]));
        let bounds = bounds(&memory);
        let cache = Cache::default();
        let host = memory.0.as_mut_ptr() as usize;
        // SAFETY: places of a byte.
        unsafe {
            store8(cache.place(host + 3, 1, true, bounds).expect("one byte"), 9);
            cache.invalidate();
            assert_eq!(load8(cache.place(host + 3, 1, false, bounds).expect("one byte")), 9);
        }
        cache.discard((host, host + 512));
        assert_eq!(memory.0[..5], [0, 0, 0, 9, 0]);
    }

    #[test]
    fn accesses_that_span_lines_have_no_place_and_the_ends_of_a_mapping_are_kept() {
        let memory = Box::new(Aligned([5; 512]));
        let start = memory.0.as_ptr() as usize;
        let cache = Cache::default();
        assert_eq!(cache.place(start + 126, 4, false, bounds(&memory)), None);
        assert_eq!(inside(start, (start + 4, start + 6)), 0b11_0000);
        assert_eq!(inside(start, (start + 200, start + 300)), 0);
        assert_eq!(inside(start, (0, usize::MAX)), u128::MAX);
    }

    #[test]
    fn the_first_level_keeps_what_it_has_until_it_is_emptied_or_the_group_writes() {
        let mut memory = Box::new(Aligned([1; 512]));
        let at = memory.0.as_mut_ptr();
        let bounds = bounds(&memory);
        let mut l1 = FirstLevel::default();
        let below = |host: usize, _| Some(host as *mut u8);
        let load = |l1: &mut FirstLevel| {
            // SAFETY: a place of a byte.
            unsafe { load8(l1.load(at as usize + 40, 1, bounds, below).expect("one byte")) }
        };
        assert_eq!(load(&mut l1), 1);
        // SAFETY: inside the array.
        unsafe { store8(at.add(40), 2) };
        assert_eq!(load(&mut l1), 1);
        l1.drop_bytes(at as usize + 38, 4);
        assert_eq!(load(&mut l1), 2);
        // SAFETY: inside the array.
        unsafe { store8(at.add(40), 3) };
        l1.clear();
        assert_eq!(load(&mut l1), 3);
    }
}
