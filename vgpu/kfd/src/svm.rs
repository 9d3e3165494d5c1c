//! Shared virtual memory: ranges of the process's own memory that GPUs reach at the host's addresses.
//!
//! As on an MI200 without XNACK: a range is mapped when a GPU is given access, for reading only where the program may not write itself,
//! and no access is ever retried. (The driver would follow a later `mprotect`.) Where pages
//! are (`PREFERRED_LOC`, `PREFETCH_LOC`) is remembered and answered, but they stay in host memory: programs cannot tell.
//! The driver forgets a range when its memory is unmapped, and so does this when the program unmaps, replaces or moves it
//! (`hooks.rs`). libc's own calls, such as `free` of a large block, are not seen: a GPU that uses what is gone faults all the same,
//! and such a range is forgotten when the next attributes are set; only new memory at its address, used before that, is
//! taken for the old.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    abi::{SvmArgs, SvmAttribute, svm},
    os,
    process::{Gpu, Process},
    protection,
    vm::Mapping,
};

type Errno = i32;

const PAGE: u64 = 4096;
/// `KFD_IOCTL_SVM_LOCATION_UNDEFINED`
const UNDEFINED: u32 = u32::MAX;
/// The driver's default: migrations of 2 MiB.
const GRANULARITY: u32 = 9;
/// Attributes of one call.
const MOST_ATTRIBUTES: u32 = 1 << 10;

/// What is known of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attributes {
    preferred: u32,
    prefetch: u32,
    flags: u32,
    granularity: u32,
    /// Bit i: GPU i may access it, wherever the pages are.
    access: u32,
    /// Bit i: GPU i may access it, and pages do not move for it.
    in_place: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            preferred: UNDEFINED,
            prefetch: UNDEFINED,
            flags: svm::FLAG_HOST_ACCESS | svm::FLAG_COHERENT,
            granularity: GRANULARITY,
            access: 0,
            in_place: 0,
        }
    }
}

/// The ranges of a process: each from its key to its end.
#[derive(Debug, Default)]
pub struct Svm {
    ranges: Mutex<Table>,
    /// The thread that holds the ranges.
    holder: AtomicUsize,
    /// There has been one: most programs have none, and unmap often.
    used: AtomicBool,
}

type Table = BTreeMap<u64, (u64, Attributes)>;

/// The ranges, held.
struct Held<'a> {
    table: MutexGuard<'a, Table>,
    holder: &'a AtomicUsize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// Cuts the range that `at` lies in.
fn cut(ranges: &mut Table, at: u64) {
    if let Some((start, (end, attributes))) = ranges.range(..at).next_back().map(|(start, range)| (*start, *range))
        && end > at
    {
        ranges.insert(start, (at, attributes));
        ranges.insert(at, (end, attributes));
    }
}

/// Makes ranges cover `start..end` exactly, new ones with the defaults.
fn cover(ranges: &mut Table, start: u64, end: u64) {
    cut(ranges, start);
    cut(ranges, end);
    let mut at = start;
    while at < end {
        at = match ranges.range(at..end).next().map(|(start, range)| (*start, range.0)) {
            Some((next, end)) if next == at => end,
            found => {
                let until = found.map_or(end, |(next, _)| next);
                ranges.insert(at, (until, Attributes::default()));
                until
            }
        };
    }
}

impl Svm {
    fn ranges(&self) -> Held<'_> {
        let table = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        self.holder.store(os::thread(), Ordering::Relaxed);
        Held {
            table,
            holder: &self.holder,
        }
    }

    /// `SVM`: sets or asks for attributes of a range.
    ///
    /// # Errors
    /// `EINVAL` for what the driver refuses, `EFAULT` where the process has no memory, `EADDRINUSE` where a buffer is mapped.
    ///
    /// # Safety
    /// `attributes` is valid for `args.nattr` entries.
    pub unsafe fn ioctl(&self, process: &Process, args: &SvmArgs, attributes: *mut SvmAttribute) -> Result<(), Errno> {
        let (start, size) = (args.start_addr, args.size);
        let end = start.checked_add(size).ok_or(libc::EINVAL)?;
        if size == 0 || !(start | size).is_multiple_of(PAGE) || args.nattr > MOST_ATTRIBUTES {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller's promise; the array is the calling thread's until the ioctl returns.
        let attributes = unsafe {
            match args.nattr {
                0 => &mut [][..],
                n => std::slice::from_raw_parts_mut(attributes, n as usize),
            }
        };
        if !os::is_mapped(start, size) {
            return Err(libc::EFAULT);
        }
        match args.op {
            svm::OP_SET => self.set(process, start, end, attributes),
            svm::OP_GET => self.get(process, start, end, attributes),
            _ => Err(libc::EINVAL),
        }
    }

    /// Forgets what was known of a range: its memory goes, or a buffer is mapped there now.
    pub fn forget(&self, process: &Process, start: u64, size: u64) {
        // An allocator may unmap something of its own while this thread works on the ranges: that is none of them.
        if !self.used.load(Ordering::Acquire) || self.holder.load(Ordering::Relaxed) == os::thread() {
            return;
        }
        let end = start.saturating_add(size);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        Self::drop_ranges(process, &mut self.ranges().table, start / PAGE * PAGE, end);
    }

    /// Forgets ranges whose memory has gone unseen.
    fn forget_unmapped(process: &Process, ranges: &mut Table) {
        let gone: Vec<(u64, u64)> = ranges
            .iter()
            .map(|(start, range)| (*start, range.0))
            .filter(|(start, end)| !os::is_mapped(*start, end - start))
            .collect();
        for (start, end) in gone {
            Self::drop_ranges(process, ranges, start, end);
        }
    }

    fn drop_ranges(process: &Process, ranges: &mut Table, start: u64, end: u64) {
        if ranges
            .range(..end)
            .next_back()
            .is_none_or(|(_, range)| range.0 <= start)
        {
            return;
        }
        cut(ranges, start);
        cut(ranges, end);
        let gone: Vec<u64> = ranges.range(start..end).map(|(start, _)| *start).collect();
        for key in gone {
            if let Some((end, _)) = ranges.remove(&key) {
                process.gpus.iter().for_each(|gpu| gpu.vm.clear_user(key, end - key));
            }
        }
    }

    fn set(&self, process: &Process, start: u64, end: u64, attributes: &[SvmAttribute]) -> Result<(), Errno> {
        // All is checked before anything changes.
        for attribute in attributes {
            match attribute.kind {
                svm::PREFERRED_LOC | svm::PREFETCH_LOC => {
                    if attribute.value != 0 && attribute.value != UNDEFINED {
                        gpu(process, attribute.value)?;
                    }
                    if attribute.kind == svm::PREFETCH_LOC && attribute.value == UNDEFINED {
                        return Err(libc::EINVAL);
                    }
                }
                svm::ACCESS | svm::ACCESS_IN_PLACE | svm::NO_ACCESS => drop(gpu(process, attribute.value)?),
                svm::SET_FLAGS | svm::CLR_FLAGS | svm::GRANULARITY => {}
                _ => return Err(libc::EINVAL),
            }
        }
        let mut held = self.ranges();
        let ranges = &mut *held.table;
        self.used.store(true, Ordering::Release);
        Self::forget_unmapped(process, ranges);
        cover(ranges, start, end);
        for (start, (end, known)) in ranges.range_mut(start..end) {
            for attribute in attributes {
                apply(process, known, attribute);
            }
            for gpu in &process.gpus {
                map(gpu, *start, *end, known)?;
            }
        }
        Ok(())
    }

    fn get(&self, process: &Process, start: u64, end: u64, wanted: &mut [SvmAttribute]) -> Result<(), Errno> {
        let mut held = self.ranges();
        let ranges = &mut *held.table;
        cut(ranges, start);
        cut(ranges, end);
        let mut known: Vec<Attributes> = ranges.range(start..end).map(|(_, range)| range.1).collect();
        let covered: u64 = ranges.range(start..end).map(|(from, range)| range.0 - from).sum();
        if covered < end - start {
            known.push(Attributes::default());
        }
        // One answer for all: where they differ, the location is undefined.
        let same = |of: fn(&Attributes) -> u32| {
            let first = of(&known[0]);
            if known.iter().all(|a| of(a) == first) {
                first
            } else {
                UNDEFINED
            }
        };
        for attribute in wanted {
            match attribute.kind {
                svm::PREFERRED_LOC => attribute.value = same(|a| a.preferred),
                svm::PREFETCH_LOC => attribute.value = same(|a| a.prefetch),
                svm::ACCESS => {
                    let bit = 1 << gpu(process, attribute.value)?.index;
                    attribute.kind = if known.iter().all(|a| a.in_place & bit != 0) {
                        svm::ACCESS_IN_PLACE
                    } else if known.iter().all(|a| (a.access | a.in_place) & bit != 0) {
                        svm::ACCESS
                    } else {
                        svm::NO_ACCESS
                    };
                }
                svm::SET_FLAGS => attribute.value = known.iter().fold(u32::MAX, |all, a| all & a.flags),
                svm::CLR_FLAGS => attribute.value = known.iter().fold(u32::MAX, |all, a| all & !a.flags),
                svm::GRANULARITY => attribute.value = known.iter().map(|a| a.granularity).min().unwrap_or(GRANULARITY),
                _ => return Err(libc::EINVAL),
            }
        }
        Ok(())
    }
}

fn gpu(process: &Process, id: u32) -> Result<&Gpu, Errno> {
    process.gpu_by_id(id).ok_or(libc::EINVAL)
}

fn apply(process: &Process, known: &mut Attributes, attribute: &SvmAttribute) {
    let bit = process.gpu_by_id(attribute.value).map_or(0, |gpu| 1 << gpu.index);
    match attribute.kind {
        svm::PREFERRED_LOC => known.preferred = attribute.value,
        svm::PREFETCH_LOC => known.prefetch = attribute.value,
        svm::ACCESS => (known.access, known.in_place) = (known.access | bit, known.in_place & !bit),
        svm::ACCESS_IN_PLACE => (known.access, known.in_place) = (known.access & !bit, known.in_place | bit),
        svm::NO_ACCESS => (known.access, known.in_place) = (known.access & !bit, known.in_place & !bit),
        svm::SET_FLAGS => known.flags |= attribute.value,
        svm::CLR_FLAGS => known.flags &= !attribute.value,
        _ => known.granularity = attribute.value.min(63),
    }
}

/// Brings a GPU's page table in line with a range's attributes.
fn map(gpu: &Gpu, start: u64, end: u64, known: &Attributes) -> Result<(), Errno> {
    gpu.vm.clear_user(start, end - start);
    if (known.access | known.in_place) >> gpu.index & 1 == 0 {
        return Ok(());
    }
    // What the program itself may only read, GPUs may only read (`svm_range_validate_and_map`).
    for run in protection::runs(start, end)? {
        let mapping = Mapping {
            size: run.end - run.start,
            host: run.start as usize,
            writable: run.writable && known.flags & svm::FLAG_GPU_RO == 0,
            executable: known.flags & svm::FLAG_GPU_EXEC != 0,
            foreign: false,
            user: true,
            // The program may unmap it at any time, before a cache has written anything back.
            coarse: false,
        };
        if !gpu.vm.insert(run.start, mapping) {
            return Err(libc::EADDRINUSE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cdna::memory::GpuMemory as _;

    use super::*;
    use crate::kfd::tests::{done, machine};

    /// Pages of the test's own.
    fn pages(count: u64) -> u64 {
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh mapping, left to the end of the test program.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), (count * PAGE) as usize, prot, flags, -1, 0) };
        assert_ne!(address, libc::MAP_FAILED);
        address as u64
    }

    fn call(process: &Process, op: u32, start: u64, size: u64, pairs: &mut [(u32, u32)]) -> Result<(), Errno> {
        let mut attributes: Vec<SvmAttribute> = pairs
            .iter()
            .map(|(kind, value)| SvmAttribute {
                kind: *kind,
                value: *value,
            })
            .collect();
        let args = SvmArgs {
            start_addr: start,
            size,
            op,
            nattr: attributes.len() as u32,
        };
        // SAFETY: as many attributes as announced.
        let answer = unsafe { process.svm.ioctl(process, &args, attributes.as_mut_ptr()) };
        for (pair, attribute) in pairs.iter_mut().zip(attributes) {
            *pair = (attribute.kind, attribute.value);
        }
        answer
    }

    #[test]
    fn access_maps_and_its_end_unmaps() {
        let process = machine("svm-access");
        let (a, b) = (process.gpus[0].id, process.gpus[1].id);
        let start = pages(8);
        let size = 8 * PAGE;
        call(process, svm::OP_SET, start, size, &mut [(svm::ACCESS_IN_PLACE, a)]).unwrap();
        assert_eq!(process.gpus[0].vm.region(start).map(|r| r.host as u64), Some(start));
        assert!(process.gpus[1].vm.region(start).is_none());
        // Read-only in the middle, for the other GPU too.
        let (middle, len) = (start + 2 * PAGE, 2 * PAGE);
        let mut set = [(svm::ACCESS, b), (svm::SET_FLAGS, svm::FLAG_GPU_RO)];
        call(process, svm::OP_SET, middle, len, &mut set).unwrap();
        for gpu in &process.gpus {
            assert!(!gpu.vm.region(middle).unwrap().writable);
        }
        assert!(process.gpus[0].vm.region(start).unwrap().writable);
        assert!(process.gpus[0].vm.region(middle + len).unwrap().writable);
        let mut whole = [
            (svm::ACCESS, a),
            (svm::ACCESS, b),
            (svm::SET_FLAGS, 0),
            (svm::CLR_FLAGS, 0),
        ];
        call(process, svm::OP_GET, start, size, &mut whole).unwrap();
        assert_eq!((whole[0].0, whole[1].0), (svm::ACCESS_IN_PLACE, svm::NO_ACCESS));
        assert_eq!(whole[2].1 & svm::FLAG_GPU_RO, 0);
        assert_eq!(whole[3].1 & svm::FLAG_GPU_RO, 0, "it differs");
        call(process, svm::OP_SET, start, size, &mut [(svm::NO_ACCESS, a)]).unwrap();
        assert!(process.gpus[0].vm.region(start).is_none() && process.gpus[0].vm.region(middle).is_none());
        assert!(process.gpus[1].vm.region(middle).is_some());
        process.svm.forget(process, middle, PAGE);
        assert!(process.gpus[1].vm.region(middle).is_none() && process.gpus[1].vm.region(middle + PAGE).is_some());
        done(process);
    }

    #[test]
    fn pages_that_the_program_may_only_read_are_mapped_so() {
        let process = machine("svm-read-only");
        let gpu = &process.gpus[0];
        let start = pages(4);
        let protect = |page: u64, protection| {
            let address = (start + page * PAGE) as *mut libc::c_void;
            // SAFETY: the test's own page.
            assert_eq!(unsafe { libc::mprotect(address, PAGE as usize, protection) }, 0);
        };
        protect(1, libc::PROT_READ);
        call(process, svm::OP_SET, start, 4 * PAGE, &mut [(svm::ACCESS, gpu.id)]).unwrap();
        let writable = |page| gpu.vm.region(start + page * PAGE).unwrap().writable;
        assert_eq!([0, 1, 2, 3].map(writable), [true, false, true, true]);
        assert_eq!(
            gpu.vm.region(start + 2 * PAGE).unwrap().end,
            start + 4 * PAGE,
            "in one piece"
        );
        protect(3, libc::PROT_NONE);
        let refused = call(process, svm::OP_SET, start, 4 * PAGE, &mut [(svm::ACCESS, gpu.id)]);
        assert_eq!(refused, Err(libc::EFAULT));
        done(process);
    }

    #[test]
    fn unmapped_memory_is_forgotten() {
        let process = machine("svm-unmapped");
        let gpu = &process.gpus[0];
        let give = |start| call(process, svm::OP_SET, start, 4 * PAGE, &mut [(svm::ACCESS, gpu.id)]).unwrap();
        let (seen, unseen, other) = (pages(4), pages(4), pages(4));
        give(seen);
        give(unseen);
        // What the hook of `munmap` does first: part of a range goes, the rest stays.
        process.svm.forget(process, seen + PAGE + 1, PAGE);
        for (page, there) in [(0, true), (1, false), (2, false), (3, true)] {
            assert_eq!(gpu.vm.region(seen + page * PAGE).is_some(), there, "page {page}");
        }
        // What libc does for itself is seen at the next attributes.
        // SAFETY: the test's own pages, which nothing else uses; mapped again at the same place.
        unsafe {
            assert_eq!(
                os::raw(libc::SYS_munmap, [unseen as usize, 4 * PAGE as usize, 0, 0, 0, 0]),
                0
            );
            assert!(gpu.vm.region(unseen).is_none(), "it faults");
            give(other);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let again = libc::mmap(unseen as *mut libc::c_void, 4 * PAGE as usize, prot, flags, -1, 0);
            assert_eq!(again as u64, unseen);
        }
        assert!(gpu.vm.region(unseen).is_none() && gpu.vm.region(other).is_some());
        done(process);
    }

    #[test]
    fn unknown_memory_has_the_defaults() {
        let process = machine("svm-defaults");
        let start = pages(2);
        let mut get = [
            (svm::PREFERRED_LOC, 7),
            (svm::PREFETCH_LOC, 7),
            (svm::GRANULARITY, 0),
            (svm::ACCESS, process.gpus[0].id),
        ];
        call(process, svm::OP_GET, start, 2 * PAGE, &mut get).unwrap();
        assert_eq!(get.map(|pair| pair.1)[..3], [UNDEFINED, UNDEFINED, GRANULARITY]);
        assert_eq!(get[3].0, svm::NO_ACCESS);
        let gpu = process.gpus[0].id;
        call(process, svm::OP_SET, start, PAGE, &mut [(svm::PREFETCH_LOC, gpu)]).unwrap();
        let mut get = [(svm::PREFETCH_LOC, 0)];
        call(process, svm::OP_GET, start, PAGE, &mut get).unwrap();
        assert_eq!(get[0].1, gpu);
        call(process, svm::OP_GET, start, 2 * PAGE, &mut get).unwrap();
        assert_eq!(get[0].1, UNDEFINED, "the pages differ");
        done(process);
    }

    #[test]
    fn what_the_driver_refuses() {
        let process = machine("svm-refusals");
        let start = pages(1);
        let gpu = process.gpus[0].id;
        let refused = |start, size, pair: (u32, u32)| call(process, svm::OP_SET, start, size, &mut [pair]).err();
        assert_eq!(refused(start, 0, (svm::ACCESS, gpu)), Some(libc::EINVAL));
        assert_eq!(refused(start + 1, PAGE, (svm::ACCESS, gpu)), Some(libc::EINVAL));
        assert_eq!(refused(start, PAGE, (svm::ACCESS, 1)), Some(libc::EINVAL));
        assert_eq!(refused(start, PAGE, (99, 0)), Some(libc::EINVAL));
        assert_eq!(refused(start, 1 << 46, (svm::ACCESS, gpu)), Some(libc::EFAULT));
        assert_eq!(
            refused(start, u64::MAX / PAGE * PAGE, (svm::ACCESS, gpu)),
            Some(libc::EINVAL)
        );
        assert!(process.gpus[0].vm.region(start).is_none());
        done(process);
    }
}
