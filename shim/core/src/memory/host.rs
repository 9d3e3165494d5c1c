//! Host memory that GPUs can use: allocated here (`cudaHostAlloc`), or the client's, pinned (`cudaHostRegister`).

use core::ptr::NonNull;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;

use super::registry::{Conflict, Description};
use super::{Entry, Kind, REGISTRY, forked_pages, lookup, pointer_to, release, unexpected};
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::hsa::{self, Agent};

/// `cudaHostAllocMapped`, `cudaHostRegisterMapped`: always on, and read back as set (recorded).
pub(super) const MAPPED: u32 = 2;
/// Portable, mapped, write-combined.
const ALLOCATE_FLAGS: u32 = 7;
/// `cudaHostRegisterReadOnly`; not read back (recorded).
const READ_ONLY: u32 = 8;
/// Portable, mapped, read-only.
const REGISTER_FLAGS: u32 = 1 | MAPPED | READ_ONLY;

/// GPUs that see pinned memory: all, as unified addressing has it.
fn all_gpus() -> Result<Vec<&'static Agent>> {
    Ok(crate::device::all()?.iter().map(|device| device.agent).collect())
}

/// Allocates `size` bytes (not 0) of pinned memory, coherent with all GPUs, near the context's. Write-combining is accepted
/// and has no effect: host caches stay coherent.
///
/// [`Error::INVALID_VALUE`] for unknown flags, [`Error::MEMORY_ALLOCATION`] when there is not enough.
pub fn allocate(context: &'static Context, size: usize, flags: u32) -> Result<Entry> {
    if flags & !ALLOCATE_FLAGS != 0 {
        return Err(Error::INVALID_VALUE);
    }
    block(context, Kind::Host, size, flags | MAPPED)
}

/// A block of coherent host memory, near the context's GPU and mapped to all of them.
pub(super) fn block(context: &'static Context, kind: Kind, size: usize, flags: u32) -> Result<Entry> {
    let address = context.device.host_pool.allocate(size).map_err(|error| {
        log::debug!("no {size} bytes of pinned host memory: {error}");
        Error::MEMORY_ALLOCATION
    })?;
    let undo = |error| {
        drop(forked_pages::detach(address, size));
        // SAFETY: nobody has seen the block.
        let _ = unsafe { hsa::memory::free(address) };
        error
    };
    if kind == Kind::Host {
        // SAFETY: nobody has seen the block, and ROCr gives host memory out by the page.
        unsafe { forked_pages::share(address, size) }.map_err(|error| {
            log::warn!("{size} bytes of pinned host memory cannot be shared with forked children: {error}");
            undo(Error::MEMORY_ALLOCATION)
        })?;
    }
    hsa::memory::allow_access(&all_gpus()?, address).map_err(|error| undo(error.into()))?;
    let base = address.as_ptr().expose_provenance() as u64;
    let description = Description {
        flags,
        ..Description::device(kind, base, size as u64, context)
    };
    REGISTRY
        .insert(description)
        .map_err(|conflict| undo(unexpected(conflict, &description)))
}

/// Frees memory of [`allocate`]; `address` must be its first byte, anything else is [`Error::INVALID_VALUE`].
pub fn free(address: u64) -> Result<()> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Host && entry.base == address);
    let entry = entry.ok_or(Error::INVALID_VALUE)?;
    entry.context.synchronize()?;
    let entry = REGISTRY.remove(entry.base, entry.id).ok_or(Error::INVALID_VALUE)?;
    release(&entry);
    Ok(())
}

/// Pins the client's memory and maps it to all GPUs. The range may begin and end anywhere; its ends are kept exactly.
///
/// [`Error::HOST_MEMORY_ALREADY_REGISTERED`] when part of it is registered; [`Error::INVALID_VALUE`] when part of it is CUDA's
/// own, is not mapped, or is read-only (without `cudaHostRegisterReadOnly`), and for unknown flags; [`Error::NOT_SUPPORTED`] for
/// `cudaHostRegisterReadOnly` where the driver pins for writing only, as the manual has it.
///
/// # Safety
/// The range stays mapped until [`unregister`] (clients that unmap it first get what they get on NVIDIA's driver: nothing bad as
/// long as no GPU uses it).
pub unsafe fn register(context: &'static Context, address: u64, size: usize, flags: u32) -> Result<()> {
    if flags & !REGISTER_FLAGS != 0 || size == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let writable = flags & READ_ONLY == 0;
    if !writable && !read_only_is_supported() {
        return Err(Error::NOT_SUPPORTED);
    }
    let pointer = pointer_to(address).ok_or(Error::INVALID_VALUE)?;
    let base = pointer.as_ptr().expose_provenance() as u64;
    base.checked_add(size as u64).ok_or(Error::INVALID_VALUE)?;
    match REGISTRY.overlapping(base, size as u64) {
        Some(Kind::Registered) => return Err(Error::HOST_MEMORY_ALREADY_REGISTERED),
        Some(_) => return Err(Error::INVALID_VALUE),
        None => {}
    }
    // A driver that pins for writing refuses by itself what is not there or may not be written.
    if read_only_is_supported() {
        check_mapped(pointer, size, writable)?;
    }
    // SAFETY: mapped now (checked here or by the driver), and later by the caller's promise.
    let device = unsafe { hsa::memory::lock(pointer, size, &all_gpus()?, context.device.host_pool) };
    let device = device.map_err(|error| {
        log::debug!("{size} bytes of host memory at {base:#x} cannot be pinned: {error}");
        // ROCr calls every refusal of the driver a lack of resources.
        if error.is_out_of_resources() && check_mapped(pointer, size, writable).is_ok() {
            Error::MEMORY_ALLOCATION
        } else {
            Error::INVALID_VALUE
        }
    })?;
    let description = Description {
        flags: flags & !READ_ONLY | MAPPED,
        device_base: device.as_ptr().addr() as u64,
        ..Description::device(Kind::Registered, base, size as u64, context)
    };
    REGISTRY.insert(description).map(drop).map_err(|conflict| {
        let _ = hsa::memory::unlock(pointer);
        match conflict {
            // Another thread was faster.
            Conflict::Overlaps(Kind::Registered) => Error::HOST_MEMORY_ALREADY_REGISTERED,
            _ => Error::INVALID_VALUE,
        }
    })
}

/// Ends [`register`]. [`Error::INVALID_VALUE`] for an address inside a registered range or in memory of [`allocate`],
/// [`Error::HOST_MEMORY_NOT_REGISTERED`] for one that CUDA does not know.
pub fn unregister(address: u64) -> Result<()> {
    if address == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let entry = lookup(address).ok_or(Error::HOST_MEMORY_NOT_REGISTERED)?;
    if entry.kind != Kind::Registered || entry.base != address {
        return Err(Error::INVALID_VALUE);
    }
    entry.context.synchronize()?;
    let entry = REGISTRY
        .remove(entry.base, entry.id)
        .ok_or(Error::HOST_MEMORY_NOT_REGISTERED)?;
    release(&entry);
    Ok(())
}

/// The flags of host memory at `address`, of any kind; [`Error::INVALID_VALUE`] for anything else.
pub fn flags(address: u64) -> Result<u32> {
    let entry = lookup(address).filter(|entry| !entry.kind.is_device());
    entry.map(|entry| entry.flags).ok_or(Error::INVALID_VALUE)
}

/// The entry of pinned memory at `address`, of either kind; [`Error::INVALID_VALUE`] for anything else.
pub fn pinned(address: u64) -> Result<Entry> {
    lookup(address)
        .filter(|entry| matches!(entry.kind, Kind::Host | Kind::Registered))
        .ok_or(Error::INVALID_VALUE)
}

pub(super) const PAGE: usize = 4096;

/// From this size on, bytes, asking for each mapping costs less than touching each page.
const MANY_PAGES: usize = 128 << 10;

/// [`Error::INVALID_VALUE`] for a range that is not mapped, or not writable if `writable`.
fn check_mapped(address: NonNull<u8>, size: usize, writable: bool) -> Result<()> {
    let start = address.as_ptr().addr();
    if size >= MANY_PAGES
        && let Some(permitted) = mappings_permit(start, start + size, writable)
    {
        return if permitted { Ok(()) } else { Err(Error::INVALID_VALUE) };
    }
    make_present(address, size, writable)
}

/// As [`permits`], by the kernel's answers about single mappings (`PROCMAP_QUERY`); `None` where it knows no such question, before
/// Linux 6.11.
fn mappings_permit(start: usize, end: usize, writable: bool) -> Option<bool> {
    /// `struct procmap_query` of `linux/fs.h`.
    #[repr(C)]
    #[derive(Default)]
    struct Query {
        size: u64,
        flags: u64,
        address: u64,
        start: u64,
        end: u64,
        /// 1 readable, 2 writable.
        permissions: u64,
        /// Page size, offset, inode, device, and what is not asked for: name and build id.
        rest: [u64; 7],
    }
    const _: () = assert!(size_of::<Query>() == 104);
    /// `_IOWR('f', 17, struct procmap_query)`
    const PROCMAP_QUERY: libc::c_ulong = 0xc068_6611;
    let maps = std::fs::File::open("/proc/self/maps").ok()?;
    let wanted = if writable { 3 } else { 1 };
    let mut covered = start as u64;
    while covered < end as u64 {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            address: covered,
            ..Query::default()
        };
        // SAFETY: the kernel reads and writes the structure, whose size it is told.
        if unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY, &raw mut query) } != 0 {
            let hole = std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT);
            return hole.then_some(false);
        }
        if query.permissions & wanted != wanted {
            return Some(false);
        }
        covered = query.end;
    }
    Some(true)
}

/// Faults the range's pages in, as pinning would; [`Error::INVALID_VALUE`] for a range that is not mapped, or not writable if
/// `writable`.
fn make_present(address: NonNull<u8>, size: usize, writable: bool) -> Result<()> {
    let start = address.as_ptr().addr() & !(PAGE - 1);
    let end = (address.as_ptr().addr() + size)
        .checked_next_multiple_of(PAGE)
        .ok_or(Error::INVALID_VALUE)?;
    let advice = if writable {
        libc::MADV_POPULATE_WRITE
    } else {
        libc::MADV_POPULATE_READ
    };
    let pages = core::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the kernel checks the range; faulting pages in changes no content.
    if unsafe { libc::madvise(pages, end - start, advice) } == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error().raw_os_error() {
        // A kernel before 5.14, a mapping of a device, or a missing permission: the list of mappings tells.
        Some(libc::EINVAL) => match std::fs::read_to_string("/proc/self/maps") {
            Ok(maps) if !permits(&maps, start, end, writable) => Err(Error::INVALID_VALUE),
            // Then ROCr has to judge.
            _ => Ok(()),
        },
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Whether a process with these mappings (the text of `/proc/self/maps`) may read, and write if `writable`, all of a range.
fn permits(maps: &str, start: usize, end: usize, writable: bool) -> bool {
    let mut covered = start;
    for line in maps.lines() {
        let Some((range, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((from, to)) = range.split_once('-') else {
            continue;
        };
        let bound = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (from, to) = (bound(from), bound(to));
        if to <= covered || from >= end {
            continue;
        }
        let allowed = rest.starts_with('r') && (!writable || rest.as_bytes().get(1) == Some(&b'w'));
        if from > covered || !allowed {
            return false;
        }
        covered = to;
    }
    covered >= end
}

/// Whether registered host memory has the same address on the GPUs as on the host. ROCr decides; so one page is tried, once.
pub fn registered_address_is_same() -> bool {
    static SAME: OnceLock<bool> = OnceLock::new();
    *SAME.get_or_init(|| try_a_page(libc::PROT_READ | libc::PROT_WRITE) == Some(true))
}

/// Whether memory that the program may only read can be registered. A driver that shares virtual memory gives GPUs the rights that
/// the program has; without that it pins for writing, whatever is asked for.
pub fn read_only_is_supported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| try_a_page(libc::PROT_READ).is_some())
}

/// Pins a page that the program may use as `protection` says: whether its address on the GPUs is the same, `None` where it cannot be
/// pinned.
fn try_a_page(protection: i32) -> Option<bool> {
    let gpus = all_gpus().ok()?;
    let pool = crate::device::all().ok()?.first()?.host_pool;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let page = unsafe { libc::mmap(core::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    let address = NonNull::new(page.cast::<u8>()).filter(|_| page != libc::MAP_FAILED)?;
    // SAFETY: the page outlives the lock.
    let device = unsafe { hsa::memory::lock(address, PAGE, &gpus, pool) };
    if device.is_ok() {
        let _ = hsa::memory::unlock(address);
    }
    // SAFETY: the page is this function's, and pinned no more.
    unsafe { libc::munmap(page, PAGE) };
    device.ok().map(|device| device == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_read_from_the_mappings() {
        let maps = "1000-3000 rw-p 00000000 00:00 0\n3000-4000 r--p 00000000 00:00 0 /lib/x\n\
                    4000-5000 rw-s 00000000 00:00 0\n6000-7000 ---p 00000000 00:00 0\n";
        for (start, end, writable, expected) in [
            (0x1000, 0x3000, true, true),
            (0x2000, 0x4000, true, false),
            (0x1000, 0x5000, false, true),
            (0x4000, 0x5000, true, true),
            (0x4000, 0x6000, false, false),
            (0x0, 0x2000, false, false),
            (0x6000, 0x7000, false, false),
            (0x8000, 0x9000, false, false),
        ] {
            assert_eq!(
                permits(maps, start, end, writable),
                expected,
                "{start:#x}..{end:#x} {writable}"
            );
        }
    }

    #[test]
    fn only_memory_that_can_be_pinned_passes() {
        const SIZE: usize = 2 * MANY_PAGES;
        let check = |address: NonNull<u8>, size, writable| {
            let result = check_mapped(address, size, writable);
            assert_eq!(make_present(address, size, writable), result, "the two ways agree");
            let asked = mappings_permit(address.as_ptr().addr(), address.as_ptr().addr() + size, writable);
            assert!(asked.is_none_or(|permitted| permitted == result.is_ok()));
            result
        };
        // SAFETY: a new private mapping each.
        let mapped = |protection| unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let address = libc::mmap(core::ptr::null_mut(), SIZE, protection, flags, -1, 0);
            NonNull::new(address.cast::<u8>()).unwrap()
        };
        let mut memory = vec![0u8; SIZE];
        for size in [PAGE, SIZE - 5] {
            assert_eq!(check(NonNull::from(&mut memory[5]), size, true), Ok(()));
            let nowhere = NonNull::new(core::ptr::without_provenance_mut::<u8>(PAGE)).unwrap();
            assert_eq!(check(nowhere, size, true), Err(Error::INVALID_VALUE));
            let read_only = mapped(libc::PROT_READ);
            assert_eq!(check(read_only, size, true), Err(Error::INVALID_VALUE));
            assert_eq!(check(read_only, size, false), Ok(()));
        }
        // A page in the middle goes: first its rights, then itself.
        let holed = mapped(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: whole pages of that mapping.
        unsafe {
            let page = holed.as_ptr().add(SIZE / 2).cast();
            assert_eq!(check(holed, SIZE, true), Ok(()));
            assert_eq!(libc::mprotect(page, PAGE, libc::PROT_READ), 0);
            assert_eq!(check(holed, SIZE, true), Err(Error::INVALID_VALUE));
            assert_eq!(check(holed, SIZE, false), Ok(()));
            assert_eq!(libc::munmap(page, PAGE), 0);
            assert_eq!(check(holed, SIZE, false), Err(Error::INVALID_VALUE));
        }
    }
}
