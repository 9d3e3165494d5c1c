//! Objects that are never given back, packed side by side.
//!
//! Look-ups of random addresses miss the caches; one by one from the allocator, the objects would lie between others and miss the
//! translation caches too. Slabs double up to 2 MiB, which the kernel may back with one large page.

use core::marker::PhantomData;
use std::alloc::{Layout, alloc, handle_alloc_error};

const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 2 << 20;

/// Hands out objects that live for ever. All zeroes when new.
pub(super) struct Slab<T> {
    /// Address of the next object in the newest slab.
    next: usize,
    /// How many more it holds.
    left: usize,
    /// Bytes of the newest slab, 0 before the first.
    bytes: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        const { assert!(size_of::<T>() <= SMALLEST && SMALLEST.is_multiple_of(align_of::<T>())) }
        Self {
            next: 0,
            left: 0,
            bytes: 0,
            of: PhantomData,
        }
    }

    /// `object`, at its place.
    pub(super) fn put(&mut self, object: T) -> &'static T {
        if self.left == 0 {
            self.grow();
        }
        let place = core::ptr::with_exposed_provenance_mut::<T>(self.next);
        self.next += size_of::<T>();
        self.left -= 1;
        // SAFETY: `place` lies in a slab, which is never freed, is aligned for `T`, and is given out once.
        unsafe {
            place.write(object);
            &*place
        }
    }

    fn grow(&mut self) {
        self.bytes = (self.bytes * 2).clamp(SMALLEST, LARGEST);
        // Aligned to its size: no object lies across two pages, large or small, that it could share one of.
        let Ok(layout) = Layout::from_size_align(self.bytes, self.bytes) else {
            unreachable!("a power of two")
        };
        // SAFETY: the size is not 0.
        let slab = unsafe { alloc(layout) };
        if slab.is_null() {
            handle_alloc_error(layout);
        }
        if self.bytes == LARGEST {
            // SAFETY: the range is ours. A kernel that refuses leaves small pages.
            unsafe { libc::madvise(slab.cast(), LARGEST, libc::MADV_HUGEPAGE) };
        }
        self.next = slab.expose_provenance();
        self.left = self.bytes / size_of::<T>();
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_lie_side_by_side_and_keep_their_values() {
        let mut slab = Slab::new();
        let all: Vec<&'static [u64; 8]> = (0..5000).map(|n| slab.put([n; 8])).collect();
        assert!(all.iter().zip(0..).all(|(object, n)| **object == [n; 8]));
        let address = |n: usize| core::ptr::from_ref(all[n]).addr();
        assert_eq!(address(63) - address(0), 63 * 64, "the first slab");
        assert!((0..5000).all(|n| address(n) % 64 == 0));
    }
}
