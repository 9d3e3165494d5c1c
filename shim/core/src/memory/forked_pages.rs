//! Pinned memory that a forked child shares with its parent, as on CUDA: it reads what the parent writes and the other way round.
//!
//! ROCr makes pinned memory of private pages that it keeps from children (`MADV_DONTFORK`), so that `fork` moves no page under the
//! driver; a child that touches it dies. (Releases since August 2025 map shared pages instead.) So the pages of a new block, which
//! nobody has seen, are replaced by shared ones at the same address. The driver pins by address and is told of the change, as
//! of any in a program's memory; `fork` leaves shared pages where they are.
//!
//! Shared pages are a file to the kernel, and making and ending one costs more than all else here. So where blocks of a size come and
//! go, a freed block leaves its file, emptied, for the next one, under a second mapping that nobody is told of:
//!
//! ```text
//! share    ROCr's private pages give way to those of a spare file of the size, else of a new one
//! detach   before ROCr frees the block
//! keep     when it has: the second mapping is emptied, and spare
//! ```
//!
//! A file that a forked child may still see is no spare: the child would look into another block. It ends with its last mapping.

use core::ptr::NonNull;
use std::io::{Error, Result};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::host::PAGE;
use crate::{config, fork};

/// Bytes from which on ROCr asks for large pages.
const LARGE: usize = 2 << 20;

/// Blocks of more bytes leave no file: with them it is the pages that cost.
const SPARE_SIZE: usize = 4 << 20;
/// The most files with a second mapping, those of live blocks included.
const SPARES: usize = 16;
/// Spare files of as many bytes keep their pages, zeroed; larger ones give them back.
const KEPT: usize = 16 << 10;
/// How many freed blocks' sizes are remembered.
const SIZES: usize = 8;

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
    let forks = fork::count();
    let wanted = files().take(size, place.as_ref());
    let file = match wanted {
        Wanted::Spare(file) => Some(file),
        Wanted::New => Mapping::new(size),
        Wanted::Single => None,
    };
    // SAFETY: whole pages of the block (ROCr gives host memory out by the page), which the caller vouches for.
    let file = file.filter(|file| unsafe { file.show_at(address) });
    if file.is_none() {
        // SAFETY: as above.
        unsafe { map(address.as_ptr(), size, libc::MAP_FIXED)? };
    }
    // A spare's pages are bound already.
    if let Some(place) = &place
        && file.as_ref().is_none_or(|file| file.place.is_none())
    {
        place.set(address, size)?;
    }
    if let Some(file) = file {
        files().add(address, forks, file.at(place));
    }
    Ok(())
}

/// Maps new shared pages.
///
/// # Safety
/// With `MAP_FIXED`, as [`share`], of whole pages.
unsafe fn map(at: *mut u8, size: usize, fixed: i32) -> Result<*mut libc::c_void> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: the caller's promise.
    let pages = unsafe { libc::mmap(at.cast(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if pages == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    if size >= LARGE {
        // SAFETY: as above. A kernel that has no large pages to share leaves small ones.
        unsafe { libc::madvise(pages, size, libc::MADV_HUGEPAGE) };
    }
    Ok(pages)
}

/// To be called before a block of [`share`] is freed, which nothing uses any more: what [`keep`] is to be given when it is.
pub fn detach(address: NonNull<u8>, size: usize) -> Option<Detached> {
    files().remove(address, size.next_multiple_of(PAGE))
}

/// Makes what a freed block left a spare, unless a child may see it.
pub fn keep(left: Option<Detached>) {
    let Some(Detached { file, forks }) = left else { return };
    if forks == fork::count() && file.empty() {
        files().spare.push(file);
    }
}

/// The file of a block that is being freed.
#[derive(Debug)]
pub struct Detached {
    file: Mapping,
    forks: u64,
}

/// What a new block gets.
enum Wanted {
    /// The file of a freed one.
    Spare(Mapping),
    /// A file to be kept when it is freed: another of its size was.
    New,
    /// Pages that end with it.
    Single,
}

/// Files that have a second mapping. Held for a moment; mappings end outside, or seldom.
struct Files {
    spare: Vec<Mapping>,
    /// Those of live blocks, the oldest first: address, and [`fork::count`] before it was shared.
    live: Vec<(usize, u64, Mapping)>,
    /// Sizes of blocks that left nothing.
    freed: [usize; SIZES],
    next: usize,
}

static FILES: Mutex<Files> = Mutex::new(Files {
    spare: Vec::new(),
    live: Vec::new(),
    freed: [0; SIZES],
    next: 0,
});

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    fn take(&mut self, size: usize, place: Option<&Place>) -> Wanted {
        let fits = |spare: &Mapping| spare.size == size && spare.place.as_ref() == place;
        if let Some(found) = self.spare.iter().rposition(fits) {
            return Wanted::Spare(self.spare.remove(found));
        }
        if self.freed.contains(&size) {
            Wanted::New
        } else {
            Wanted::Single
        }
    }

    fn add(&mut self, address: NonNull<u8>, forks: u64, file: Mapping) {
        while self.live.len() + self.spare.len() >= SPARES {
            // The block that has lived longest will live on, and needs none.
            if self.live.is_empty() {
                self.spare.remove(0);
            } else {
                self.live.remove(0);
            }
        }
        self.live.push((address.as_ptr().addr(), forks, file));
    }

    fn remove(&mut self, address: NonNull<u8>, size: usize) -> Option<Detached> {
        let address = address.as_ptr().addr();
        match self.live.iter().rposition(|&(live, ..)| live == address) {
            Some(found) => {
                let (_, forks, file) = self.live.remove(found);
                Some(Detached { file, forks })
            }
            None => {
                if size <= SPARE_SIZE && !self.freed.contains(&size) {
                    self.freed[self.next] = size;
                    self.next = (self.next + 1) % SIZES;
                }
                None
            }
        }
    }
}

/// A second mapping of a block's shared pages.
#[derive(Debug)]
struct Mapping {
    address: usize,
    size: usize,
    /// Where the pages are put, if that was said.
    place: Option<Place>,
}

impl Mapping {
    /// The first mapping of new pages.
    fn new(size: usize) -> Option<Self> {
        // SAFETY: wherever there is room.
        let pages = unsafe { map(core::ptr::null_mut(), size, 0) }.ok()?;
        Some(Self {
            address: pages.expose_provenance(),
            size,
            place: None,
        })
    }

    /// The same, whose pages are put at `place`.
    fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    fn pages(&self) -> *mut libc::c_void {
        core::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Maps its pages over a block's too; false where that is refused.
    ///
    /// # Safety
    /// As [`share`], of whole pages.
    unsafe fn show_at(&self, address: NonNull<u8>) -> bool {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let block = address.as_ptr().cast::<libc::c_void>();
        // SAFETY: an old size of 0 makes a second mapping of shared pages and leaves the first as it is; over the block by the
        // caller's promise.
        unsafe { libc::mremap(self.pages(), 0, self.size, flags, block) == block }
    }

    /// Makes it read as zeroes, as new pages do; false where that is refused.
    fn empty(&self) -> bool {
        // SAFETY: the mapping is this type's own, and the block that showed the same pages is gone.
        unsafe {
            if self.size <= KEPT {
                self.pages().cast::<u8>().write_bytes(0, self.size);
                true
            } else {
                libc::madvise(self.pages(), self.size, libc::MADV_REMOVE) == 0
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of this type's own, of which nobody else knows.
        unsafe { libc::munmap(self.pages(), self.size) };
    }
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
#[derive(PartialEq, Eq, Debug)]
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

    /// Held by tests whose blocks come and go, and by those that fork meanwhile.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new block of whole pages, kept from children as ROCr does.
    fn block(bytes: usize) -> NonNull<u8> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        unsafe {
            let block = libc::mmap(core::ptr::null_mut(), bytes, 3, flags, -1, 0).cast::<u8>();
            assert_eq!(libc::madvise(block.cast(), bytes, libc::MADV_DONTFORK), 0);
            NonNull::new(block).unwrap()
        }
    }

    /// Frees a shared block, as `memory::release` does; whether its file is spare now.
    fn free(block: NonNull<u8>, size: usize) -> bool {
        let left = detach(block, size);
        // SAFETY: the block of the test, used no more.
        unsafe { libc::munmap(block.as_ptr().cast(), size) };
        let file = left.as_ref().map(|left| left.file.address);
        keep(left);
        file.is_some_and(|file| files().spare.iter().any(|spare| spare.address == file))
    }

    #[test]
    fn a_freed_block_leaves_its_file_emptied_for_the_next_of_its_size() {
        let _alone = alone();
        // Sizes that no other test has: one that keeps its pages, one that gives them back.
        for size in [4 * PAGE, 40 * PAGE] {
            let mut file = None;
            for round in 0..4 {
                let block = block(size);
                // SAFETY: the block is the test's own.
                let bytes = unsafe {
                    share(block, size).unwrap();
                    core::slice::from_raw_parts_mut(block.as_ptr(), size)
                };
                assert!(bytes.iter().all(|&byte| byte == 0), "round {round} of {size}");
                bytes.fill(7);
                let second = files()
                    .live
                    .iter()
                    .find_map(|(at, _, file)| (*at == block.as_ptr().addr()).then_some(file.address));
                assert_eq!(second.is_some(), round > 0, "the first leaves only its size");
                if let Some(second) = second {
                    // SAFETY: a live mapping, whose other one the test has.
                    let seen = unsafe {
                        core::ptr::with_exposed_provenance::<u8>(second)
                            .add(size - 1)
                            .read_volatile()
                    };
                    assert_eq!(seen, 7, "one file");
                    assert_eq!(*file.get_or_insert(second), second, "the same file again");
                }
                assert_eq!(free(block, size), round > 0);
            }
        }
    }

    #[test]
    fn a_file_that_a_child_may_see_is_not_used_again() {
        let _alone = alone();
        const SIZE: usize = 5 * PAGE;
        fork::register();
        for round in 0..4 {
            let block = block(SIZE);
            // SAFETY: the block is the test's own; the child only waits and looks.
            unsafe {
                share(block, SIZE).unwrap();
                let mut pipe = [0; 2];
                assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
                block.as_ptr().write_volatile(5);
                let child = libc::fork();
                if child == 0 {
                    libc::close(pipe[1]);
                    libc::read(pipe[0], (&raw mut pipe[1]).cast(), 1);
                    libc::_exit(block.as_ptr().read_volatile().into());
                }
                assert!(!free(block, SIZE), "round {round}");
                libc::close(pipe[0]);
                libc::close(pipe[1]);
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                assert_eq!(libc::WEXITSTATUS(status), 5, "the child's memory is as it was");
            }
        }
    }

    #[test]
    fn a_forked_child_and_its_parent_see_each_others_stores() {
        let _alone = alone();
        const SIZE: usize = 3 * PAGE - 100;
        let block = block(3 * PAGE);
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
