//! The GPU's page table for this process: which virtual addresses lead to which bytes.

use std::{
    collections::BTreeMap,
    sync::{
        RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cdna::{
    coherence::Cache,
    memory::{Access, Fault, FaultReason, GpuMemory, Region},
};

use crate::os;

/// Pages of the host.
const PAGE: usize = 4096;

/// A mapped run of GPU virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Bytes.
    pub size: u64,
    /// Address of the first byte in this process.
    pub host: usize,
    /// The GPU may store.
    pub writable: bool,
    /// The GPU may fetch instructions.
    pub executable: bool,
    /// Imported from another process.
    pub foreign: bool,
    /// The program's own memory, which it may unmap at any time: looked at before each use.
    pub user: bool,
    /// Coarse-grained: see [`cdna::coherence`].
    pub coarse: bool,
}

impl Mapping {
    /// Memory of this process that the GPU may load, store and execute.
    #[cfg(test)]
    pub fn of(host: usize, size: u64) -> Self {
        Self {
            size,
            host,
            writable: true,
            executable: true,
            foreign: false,
            user: false,
            coarse: true,
        }
    }
}

/// One GPU's address space.
#[derive(Debug, Default)]
pub struct AddressSpace {
    mappings: RwLock<BTreeMap<u64, Mapping>>,
    generation: AtomicU64,
    /// The L2, if coherence is to be hostile.
    cache: Option<Cache>,
}

/// A piece of a range that is contiguous in this process.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Address in this process.
    pub host: *mut u8,
    /// Bytes.
    pub len: u64,
    /// Imported from another process.
    pub foreign: bool,
}

impl AddressSpace {
    /// An empty one; with a cache if coherence is to be hostile.
    pub fn new(hostile: bool) -> Self {
        Self {
            cache: hostile.then(Cache::default),
            ..Self::default()
        }
    }

    /// What the end of a mapping does to the cache: the driver flushes it.
    fn flush(&self, mapping: &Mapping) {
        if let Some(cache) = &self.cache {
            cache.discard((mapping.host, mapping.host + mapping.size as usize));
        }
    }

    /// Adds a mapping; false if part of the range is mapped already.
    pub fn insert(&self, va: u64, mapping: Mapping) -> bool {
        let Some(end) = va.checked_add(mapping.size) else {
            return false;
        };
        let mut mappings = self.mappings.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((start, below)) = mappings.range(..end).next_back()
            && start + below.size > va
        {
            return false;
        }
        mappings.insert(va, mapping);
        true
    }

    /// Removes the mapping that starts at `va`.
    pub fn remove(&self, va: u64) -> Option<Mapping> {
        let removed = self
            .mappings
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .remove(&va);
        if let Some(mapping) = &removed {
            self.flush(mapping);
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        removed
    }

    /// Removes whatever lies in the range, cutting mappings at its ends (`AMDGPU_VA_OP_CLEAR`).
    pub fn clear(&self, va: u64, size: u64) {
        self.remove_if(va, size, |_, _| true);
    }

    /// The same for the program's own memory at its own addresses (SVM) only; buffers stay.
    pub fn clear_user(&self, va: u64, size: u64) {
        self.remove_if(va, size, |start, mapping| mapping.user && mapping.host as u64 == start);
    }

    fn remove_if(&self, va: u64, size: u64, wanted: impl Fn(u64, &Mapping) -> bool) {
        let end = va.saturating_add(size);
        let mut mappings = self.mappings.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let hit: Vec<(u64, Mapping)> = mappings
            .range(..end)
            .rev()
            .take_while(|(start, mapping)| *start + mapping.size > va)
            .filter(|(start, mapping)| wanted(**start, mapping))
            .map(|(start, mapping)| (*start, *mapping))
            .collect();
        for (start, mapping) in hit {
            mappings.remove(&start);
            self.flush(&mapping);
            if start < va {
                mappings.insert(
                    start,
                    Mapping {
                        size: va - start,
                        ..mapping
                    },
                );
            }
            if start + mapping.size > end {
                let skip = end - start;
                let rest = Mapping {
                    size: mapping.size - skip,
                    host: mapping.host + skip as usize,
                    ..mapping
                };
                mappings.insert(end, rest);
            }
        }
        drop(mappings);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The longest contiguous piece of `va..va+len` that starts at `va`.
    ///
    /// # Errors
    /// A fault at `va`.
    pub fn span(&self, va: u64, len: u64, access: Access) -> Result<Span, Fault> {
        let region = self.region(va).ok_or(Fault {
            va,
            reason: FaultReason::NotPresent,
        })?;
        match access {
            Access::Write | Access::Atomic if !region.writable => Err(Fault {
                va,
                reason: FaultReason::ReadOnly,
            }),
            Access::Execute if !region.executable => Err(Fault {
                va,
                reason: FaultReason::NoExecute,
            }),
            _ => Ok(Span {
                // SAFETY: `va` lies in the region, whose host range is one mapping.
                host: unsafe { region.host.add((va - region.start) as usize) },
                len: len.min(region.end - va),
                foreign: region.foreign,
            }),
        }
    }

    /// The whole of `va..va+len`, which must be contiguous: packets, signals, pointers.
    ///
    /// # Errors
    /// A fault at the first byte that is not there.
    pub fn contiguous(&self, va: u64, len: u64, access: Access) -> Result<*mut u8, Fault> {
        let span = self.span(va, len, access)?;
        if span.len < len {
            return Err(Fault {
                va: va + span.len,
                reason: FaultReason::NotPresent,
            });
        }
        Ok(span.host)
    }

    /// Copies as a DMA engine does. Returns the bytes that crossed into or out of another process's memory.
    ///
    /// # Errors
    /// A fault at the first byte that cannot be moved; what lies before it has been.
    pub fn copy(&self, dst: u64, src: u64, len: u64) -> Result<u64, Fault> {
        let (mut done, mut foreign) = (0, 0);
        while done < len {
            let from = self.span(src.wrapping_add(done), len - done, Access::Read)?;
            let to = self.span(dst.wrapping_add(done), from.len, Access::Write)?;
            // SAFETY: both spans are mapped for `to.len` bytes. They may overlap, and other processors may touch them
            // at the same time, as device memory allows: nothing here depends on the values.
            unsafe { std::ptr::copy(from.host, to.host, to.len as usize) };
            done += to.len;
            if from.foreign || to.foreign {
                foreign += to.len;
            }
        }
        Ok(foreign)
    }
}

impl GpuMemory for AddressSpace {
    fn region(&self, va: u64) -> Option<Region> {
        let mappings = self.mappings.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (start, mapping) = mappings.range(..=va).next_back()?;
        let (mut start, mut end, mut host) = (*start, start + mapping.size, mapping.host);
        if va >= end {
            return None;
        }
        if mapping.user && !os::is_mapped_around(host, mapping.size as usize) {
            // Part of it is gone. The card would have been told; here the page at hand is looked at.
            let page = ((va - start) as usize + host % PAGE) / PAGE * PAGE;
            let skip = page.saturating_sub(host % PAGE);
            let len = (page + PAGE - host % PAGE - skip).min(mapping.size as usize - skip);
            if !os::is_mapped_around(host + skip, len) {
                return None;
            }
            (start, end, host) = (start + skip as u64, start + (skip + len) as u64, host + skip);
        }
        Some(Region {
            start,
            end,
            host: host as *mut u8,
            writable: mapping.writable,
            executable: mapping.executable,
            foreign: mapping.foreign,
            coarse: mapping.coarse,
        })
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(bytes: &mut [u8], writable: bool) -> Mapping {
        Mapping {
            size: bytes.len() as u64,
            host: bytes.as_mut_ptr() as usize,
            writable,
            executable: false,
            foreign: false,
            user: false,
            coarse: true,
        }
    }

    #[test]
    fn overlapping_mappings_are_refused() {
        let vm = AddressSpace::default();
        let mut a = [0; 64];
        assert!(vm.insert(0x1000, mapping(&mut a, true)));
        for va in [0xff0, 0x1000, 0x103f] {
            assert!(!vm.insert(va, mapping(&mut a, true)), "{va:#x}");
        }
        assert!(vm.insert(0x1040, mapping(&mut a, true)));
        assert!(vm.insert(0xfc0, mapping(&mut a, true)));
        assert!(!vm.insert(u64::MAX, mapping(&mut a, true)));
    }

    #[test]
    fn a_copy_crosses_neighbouring_buffers_and_stops_at_a_hole() {
        let vm = AddressSpace::default();
        let (mut a, mut b, mut c) = ([1; 64], [2; 64], [0; 256]);
        vm.insert(0x1000, mapping(&mut a, true));
        vm.insert(0x1040, mapping(&mut b, true));
        vm.insert(0x2000, mapping(&mut c, true));
        assert_eq!(vm.copy(0x2000, 0x1020, 64), Ok(0));
        assert_eq!(
            vm.copy(0x2040, 0x1040, 65),
            Err(Fault {
                va: 0x1080,
                reason: FaultReason::NotPresent
            })
        );
        assert_eq!(
            (&c[..32], &c[32..128], &c[128..]),
            (&[1; 32][..], &[2; 96][..], &[0; 128][..])
        );
    }

    #[test]
    fn stores_to_read_only_memory_fault() {
        let vm = AddressSpace::default();
        let mut a = [0; 64];
        vm.insert(0x1000, mapping(&mut a, false));
        assert!(vm.contiguous(0x1000, 64, Access::Read).is_ok());
        let fault = vm.contiguous(0x1008, 8, Access::Write).unwrap_err();
        assert_eq!(
            fault,
            Fault {
                va: 0x1008,
                reason: FaultReason::ReadOnly
            }
        );
        assert_eq!(
            vm.contiguous(0x1000, 8, Access::Execute).unwrap_err().reason,
            FaultReason::NoExecute
        );
        assert_eq!(vm.contiguous(0x1038, 16, Access::Read).unwrap_err().va, 0x1040);
    }

    #[test]
    fn removal_changes_the_generation() {
        let vm = AddressSpace::default();
        let mut a = [0; 64];
        vm.insert(0x1000, mapping(&mut a, true));
        let before = vm.generation();
        assert!(vm.remove(0x1000).is_some());
        assert_ne!(vm.generation(), before);
        assert!(vm.region(0x1000).is_none());
    }

    #[test]
    fn memory_that_the_program_has_unmapped_is_not_present() {
        let vm = AddressSpace::default();
        // SAFETY: a mapping of our own, of which the middle page goes.
        let host = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let host = libc::mmap(
                std::ptr::null_mut(),
                3 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            assert_ne!(host, libc::MAP_FAILED);
            host as usize
        };
        // Registered from within its first page to within its last one.
        let (offset, size) = (100, 2 * PAGE as u64);
        let mapping = Mapping {
            user: true,
            ..Mapping::of(host + offset, size)
        };
        assert!(vm.insert(0x10_0064, mapping));
        let whole = vm.region(0x10_0064).unwrap();
        assert_eq!((whole.start, whole.end), (0x10_0064, 0x10_0064 + size));
        // SAFETY: our own page.
        unsafe { libc::munmap((host + PAGE) as *mut libc::c_void, PAGE) };
        let first = vm.region(0x10_0065).unwrap();
        assert_eq!(
            (first.start, first.end, first.host as usize),
            (0x10_0064, 0x10_1000, host + offset)
        );
        assert!(vm.region(0x10_1000).is_none() && vm.region(0x10_1fff).is_none());
        let last = vm.region(0x10_2000).unwrap();
        assert_eq!(
            (last.start, last.end, last.host as usize),
            (0x10_2000, 0x10_2064, host + 2 * PAGE)
        );
        // SAFETY: our own pages.
        unsafe { libc::munmap(host as *mut libc::c_void, 3 * PAGE) };
    }

    #[test]
    fn clear_cuts_mappings_at_both_ends() {
        let vm = AddressSpace::default();
        let mut a = [0; 0x100];
        vm.insert(0x1000, mapping(&mut a, true));
        vm.clear(0x1040, 0x40);
        assert_eq!(vm.region(0x103f).unwrap().end, 0x1040);
        assert!(vm.region(0x1040).is_none() && vm.region(0x107f).is_none());
        let rest = vm.region(0x1080).unwrap();
        assert_eq!(
            (rest.start, rest.end, rest.host as usize),
            (0x1080, 0x1100, a.as_ptr() as usize + 0x80)
        );
    }
}
