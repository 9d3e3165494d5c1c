//! Pinned memory that a forked child shares with its parent, as on CUDA: it reads what the parent writes and the other way round.
//!
//! ROCr makes pinned memory of private pages that it keeps from children (`MADV_DONTFORK`), so that `fork` moves no page under the
//! driver; a child that touches it dies. (Releases since August 2025 map shared pages instead.) So the pages of a new block, which
//! nobody has seen, are replaced by shared ones at the same address. The driver pins by address and is told of the change, as
//! of any in a program's memory; `fork` leaves shared pages where they are.

use core::ptr::NonNull;
use std::io::{Error, Result};
use std::sync::OnceLock;

use super::host::PAGE;
use crate::config;

/// Bytes from which on ROCr asks for large pages.
const LARGE: usize = 2 << 20;

/// Makes a new block of ROCr's host memory one that children share. After an error the block must be freed.
///
/// # Safety
/// Nobody uses the block, or anything else on the last of its pages.
pub unsafe fn share(address: NonNull<u8>, size: usize) -> Result<()> {
    static PRIVATE: OnceLock<bool> = OnceLock::new();
    if !*config::SHARE_PINNED.get() || !*PRIVATE.get_or_init(|| is_private(address.as_ptr().addr())) {
        return Ok(());
    }
    let size = size.next_multiple_of(PAGE);
    let place = several_nodes().then(|| Place::of(address)).transpose()?;
    let pages = address.as_ptr().cast();
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: whole pages of the block (ROCr gives host memory out by the page), which the caller vouches for.
    if unsafe { libc::mmap(pages, size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) } == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    if size >= LARGE {
        // SAFETY: as above. A kernel that has no large pages to share leaves small ones.
        unsafe { libc::madvise(pages, size, libc::MADV_HUGEPAGE) };
    }
    place.map_or(Ok(()), |place| place.set(address, size))
}

/// Whether memory at `address` is private and of no file, in the list of the process's mappings: no device's, and not shared already.
fn is_private(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    mapping(&maps, address).is_some_and(|(permissions, inode)| permissions.ends_with('p') && inode == "0")
}

/// Permissions and inode of the mapping that holds `address`.
fn mapping(maps: &str, address: usize) -> Option<(&str, &str)> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let bound = |text| usize::from_str_radix(text, 16).ok();
        let permissions = fields.next()?;
        (bound(start)?..bound(end)?)
            .contains(&address)
            .then_some((permissions, fields.nth(2)?))
    })
}

/// The memory nodes that ROCr bound a block to.
struct Place {
    mode: i32,
    nodes: [libc::c_ulong; Place::WORDS],
}

impl Place {
    /// 1024 nodes, the most that kernels are built for.
    const WORDS: usize = 16;
    const BITS: usize = Self::WORDS * libc::c_ulong::BITS as usize;

    /// Where pages at `address` are put.
    fn of(address: NonNull<u8>) -> Result<Self> {
        const OF_ADDRESS: libc::c_ulong = 2;
        Self::ask(address.as_ptr(), OF_ADDRESS)
    }

    fn ask(address: *const u8, flags: libc::c_ulong) -> Result<Self> {
        let mut place = Self {
            mode: 0,
            nodes: [0; Self::WORDS],
        };
        // SAFETY: the kernel writes the mode and as many bits of nodes as it is told.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut place.mode,
                place.nodes.as_mut_ptr(),
                Self::BITS,
                address,
                flags,
            )
        };
        if result == 0 {
            Ok(place)
        } else {
            Err(Error::last_os_error())
        }
    }

    /// Binds new pages to the same nodes.
    fn set(&self, address: NonNull<u8>, size: usize) -> Result<()> {
        const DEFAULT: i32 = 0;
        if self.mode == DEFAULT {
            return Ok(());
        }
        // SAFETY: the kernel reads the nodes, and changes where pages of the block will be put.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                address.as_ptr(),
                size,
                self.mode,
                self.nodes.as_ptr(),
                Self::BITS,
                0,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
    }
}

/// Whether the process may have memory of more than one node.
fn several_nodes() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| {
        const ALLOWED: libc::c_ulong = 4;
        let nodes = Place::ask(core::ptr::null(), ALLOWED).map(|place| place.nodes);
        nodes.is_ok_and(|nodes| nodes.iter().map(|word| word.count_ones()).sum::<u32>() > 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_of_no_file_is_told_from_the_rest() {
        let maps = "1000-3000 rw-p 00000000 00:00 0\n3000-4000 r--p 00000000 08:01 77 /lib/x\n\
                    4000-5000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n6000-7000 rw-p 00000000 00:00 0 [heap]\n";
        assert_eq!(mapping(maps, 0x1000), Some(("rw-p", "0")));
        assert_eq!(mapping(maps, 0x2fff), Some(("rw-p", "0")));
        assert_eq!(mapping(maps, 0x3000), Some(("r--p", "77")));
        assert_eq!(mapping(maps, 0x4800), Some(("rw-s", "5")));
        assert_eq!(mapping(maps, 0x5000), None);
    }

    #[test]
    fn a_forked_child_and_its_parent_see_each_others_stores() {
        const SIZE: usize = 3 * PAGE - 100;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, kept from children as ROCr does.
        let block = unsafe {
            let block = libc::mmap(core::ptr::null_mut(), 3 * PAGE, 3, flags, -1, 0).cast::<u8>();
            assert_eq!(libc::madvise(block.cast(), 3 * PAGE, libc::MADV_DONTFORK), 0);
            NonNull::new(block).unwrap()
        };
        // SAFETY: nobody else uses the mapping; the child only stores and ends.
        unsafe {
            share(block, SIZE).unwrap();
            let (first, last) = (block.as_ptr(), block.as_ptr().add(SIZE - 1));
            first.write_volatile(5);
            let child = libc::fork();
            if child == 0 {
                last.write_volatile(first.read_volatile() + 1);
                libc::_exit(0);
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            assert_eq!((status, last.read_volatile()), (0, 6));
        }
    }
}
