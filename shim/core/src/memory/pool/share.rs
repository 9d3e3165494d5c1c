//! Pools of other processes: `cuMemPoolExportToShareableHandle`, `cuMemPoolExportPointer` and their counterparts.
//!
//! The descriptor says whose pool it is, the data of a pointer where in the pool's memory it lies. The memory itself travels as
//! all memory does, by a published handle of ROCr's for the pool's block ([`ipc`]); it is attached when the first pointer into it
//! is imported, and detached when the last is freed. So the exporter may end, free or trim in any order.
//!
//! ```text
//! descriptor   a sealed memory file: exporter u64, pool u64, PCI address of the GPU u64, 0 ..56, "RGP1", checksum
//! pointer      exporter u64, pool u64, slot of the block's handle u64, offset in the block u64, size u64, 0 ..56, "RGP2", checksum
//! ```

use std::collections::{HashMap, hash_map};
use std::fs::File;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Pool, table};
use crate::abi::{Error, Result};
use crate::device::{self, Context, Device, context};
use crate::memory::ipc::{self, Attached};
use crate::memory::registry::{Description, HIDDEN_OWNER};
use crate::memory::rights::Rights;
use crate::memory::{Entry, Kind, REGISTRY, lookup, unexpected};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FD: u32 = 1;

const POOL: [u8; 4] = *b"RGP1";
const POINTER: [u8; 4] = *b"RGP2";

/// What nobody may do any more to a pool's descriptor.
const SEALS: i32 = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;

/// Handles of imported pools, unlike those of own ones ([`table`]), which all other calls ask for.
const TAG: u64 = 0x55 << 48;

/// 64 bytes that begin with some numbers.
fn sealed(numbers: &[u64], magic: [u8; 4]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (to, from) in bytes.chunks_exact_mut(8).zip(numbers) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    ipc::seal(&mut bytes, magic);
    bytes
}

/// The numbers of [`sealed`].
fn unsealed<const N: usize>(bytes: &[u8; 64], magic: [u8; 4]) -> Option<[u64; N]> {
    ipc::is_sealed(bytes, magic).then(|| core::array::from_fn(|index| ipc::long(bytes, 8 * index)))
}

fn pci_address(device: &Device) -> u64 {
    u64::from(device.agent.pci_domain) << 32 | u64::from(device.agent.pci_bdf)
}

/// A new descriptor of a pool, closed on exec.
///
/// # Errors
/// INVALID_VALUE for a pool that was made for none (a default pool is such, recorded).
pub fn export(pool: &Pool) -> Result<OwnedFd> {
    if pool.properties.handle_types & POSIX_FD == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let about = [ipc::identity(), pool.handle, pci_address(pool.properties.device)];
    memory_file(&sealed(&about, POOL)).map_err(|error| {
        log::warn!("a pool cannot be exported: {error}");
        Error::OPERATING_SYSTEM
    })
}

/// A file in memory that stays as it is.
fn memory_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated name.
    let fd = unsafe { libc::memfd_create(c"regauge-pool".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else's.
    let file = unsafe { File::from_raw_fd(fd) };
    file.write_all_at(bytes, 0)?;
    // SAFETY: an open descriptor.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } {
        0 => Ok(file.into()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What another process needs to import the allocation that begins at `address`.
///
/// # Errors
/// INVALID_VALUE for anything but memory of a pool that can be exported (recorded).
pub fn export_pointer(address: u64) -> Result<[u8; 64]> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Pool && entry.base == address);
    let entry = entry.ok_or(Error::INVALID_VALUE)?;
    let pool = table::of_memory(entry.more)?;
    if pool.properties.handle_types & POSIX_FD == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let (slot, offset) = pool.publish_segment(address)?;
    Ok(sealed(
        &[ipc::identity(), pool.handle, slot, offset, entry.size],
        POINTER,
    ))
}

/// A pool of another process.
struct Imported {
    exporter: u64,
    /// Its handle there.
    pool: u64,
    context: &'static Context,
    rights: Rights,
    /// Its blocks, by the slot in which their handle is published.
    blocks: HashMap<u64, Block>,
    /// A pointer into it was imported once.
    used: bool,
}

struct Block {
    attached: Attached,
    /// Imported allocations: id of the entry in the registry, by first byte.
    pointers: HashMap<u64, u64>,
    /// Allocations that were freed, whose streams have not got there yet.
    leaving: usize,
}

impl Block {
    fn is_unused(&self) -> bool {
        self.pointers.is_empty() && self.leaving == 0
    }
}

#[derive(Default)]
struct Table {
    last: u64,
    pools: HashMap<u64, Imported>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn locked() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn pool(&mut self, handle: u64) -> Result<&mut Imported> {
        self.pools.get_mut(&handle).ok_or(Error::INVALID_VALUE)
    }
}

/// The pool behind a descriptor of [`export`], which stays the client's. Gives a handle for [`import_pointer`], the same for the same
/// pool (recorded); nothing can be allocated from it.
///
/// # Errors
/// UNKNOWN for a descriptor that is not open or not of a pool, as for memory.
pub fn import(fd: i32) -> Result<u64> {
    let [exporter, pool, address] = read(fd).ok_or(Error::UNKNOWN)?;
    let devices = device::all()?;
    let device = match devices.iter().find(|device| pci_address(device) == address) {
        Some(device) => device,
        // It may be hidden from this process.
        None => device::get(context::runtime_device())?,
    };
    let context = context::runtime_primary(device)?;
    let mut table = locked();
    let table = table.get_or_insert_default();
    let known = table
        .pools
        .iter()
        .find(|(_, known)| (known.exporter, known.pool) == (exporter, pool));
    if let Some((&handle, _)) = known {
        return Ok(handle);
    }
    table.last += 1;
    let handle = TAG | table.last << 4;
    let imported = Imported {
        exporter,
        pool,
        context,
        rights: Rights::only(device),
        blocks: HashMap::new(),
        used: false,
    };
    table.pools.insert(handle, imported);
    Ok(handle)
}

fn read(fd: i32) -> Option<[u64; 3]> {
    if fd < 0 {
        return None;
    }
    // SAFETY: borrowed for the duplication only, which fails if it is not open.
    let file = File::from(unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()?);
    // SAFETY: an open descriptor; files of other kinds have no seals.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } != SEALS {
        return None;
    }
    let mut bytes = [0; 64];
    file.read_exact_at(&mut bytes, 0).ok()?;
    unsealed(&bytes, POOL)
}

/// Maps an allocation of an imported pool; gives its address here. The same pointer again gives the same address; one free ends both
/// (recorded).
///
/// # Errors
/// INVALID_VALUE for bytes that are not of [`export_pointer`] or of another pool, else as opening an IPC handle.
pub fn import_pointer(handle: u64, bytes: &[u8; 64]) -> Result<u64> {
    let [exporter, pool, slot, offset, size] = unsealed(bytes, POINTER).ok_or(Error::INVALID_VALUE)?;
    let mut table = locked();
    let imported = table.get_or_insert_default().pool(handle)?;
    if (imported.exporter, imported.pool) != (exporter, pool) || size == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let block = match imported.blocks.entry(slot) {
        hash_map::Entry::Occupied(known) => known.into_mut(),
        hash_map::Entry::Vacant(room) => room.insert(Block {
            attached: Attached::new(&ipc::published(exporter, slot)?)?,
            pointers: HashMap::new(),
            leaving: 0,
        }),
    };
    let entered = block.enter(imported.context, handle, offset, size);
    if block.is_unused() {
        imported.blocks.remove(&slot);
    }
    imported.used |= entered.is_ok();
    entered
}

impl Block {
    /// Makes an allocation in the block known.
    fn enter(&mut self, context: &'static Context, pool: u64, offset: u64, size: u64) -> Result<u64> {
        if offset.checked_add(size).is_none_or(|end| end > self.attached.size()) {
            return Err(Error::INVALID_VALUE);
        }
        let base = self.attached.base() + offset;
        if self.pointers.contains_key(&base) {
            return Ok(base);
        }
        let description = Description {
            more: pool,
            flags: if self.attached.owner_visible { 0 } else { HIDDEN_OWNER },
            ..Description::device(Kind::Imported, base, size, context)
        };
        // Bytes that were made up may name the middle of another allocation.
        let entry = REGISTRY
            .insert(description)
            .map_err(|conflict| unexpected(conflict, &description))?;
        self.pointers.insert(base, entry.id);
        Ok(base)
    }
}

/// Whether an entry is memory of an imported pool, which the client may free.
pub fn is_imported(entry: &Entry) -> bool {
    entry.kind == Kind::Imported && entry.more != 0
}

/// Takes an imported allocation out of the registry. [`forget`] is due when nothing uses the memory any more.
///
/// # Errors
/// INVALID_VALUE for one that is out of it already.
pub fn end_import(entry: &Entry) -> Result<()> {
    let mut table = locked();
    let pool = table.as_mut().and_then(|table| table.pools.get_mut(&entry.more));
    let mut blocks = pool.ok_or(Error::INVALID_VALUE)?.blocks.values_mut();
    let block = blocks.find(|block| block.pointers.get(&entry.base) == Some(&entry.id));
    let block = block.ok_or(Error::INVALID_VALUE)?;
    REGISTRY.remove(entry.base, entry.id).ok_or(Error::INVALID_VALUE)?;
    block.pointers.remove(&entry.base);
    block.leaving += 1;
    Ok(())
}

/// Ends the use of an entry that is out of the registry, and with the last one its block's mapping.
pub fn forget(entry: &Entry) {
    let mut table = locked();
    let Some(table) = table.as_mut() else { return };
    if let Some(pool) = table.pools.get_mut(&entry.more) {
        pool.blocks.retain(|_, block| {
            if (block.attached.base()..block.attached.base() + block.attached.size()).contains(&entry.base) {
                // Still there where its context ends; freed memory may have been imported again meanwhile.
                match block.pointers.get(&entry.base) {
                    Some(&id) if id == entry.id => drop(block.pointers.remove(&entry.base)),
                    _ => block.leaving = block.leaving.saturating_sub(1),
                }
            }
            !block.is_unused()
        });
    }
}

/// Ends the handle of an imported pool. `None` for a handle of something else.
///
/// INVALID_VALUE for one from which a pointer was ever imported: it stays (recorded), and with it what later imports need.
pub fn destroy(handle: u64) -> Option<Result<()>> {
    let mut table = locked();
    let hash_map::Entry::Occupied(pool) = table.as_mut()?.pools.entry(handle) else {
        return None;
    };
    if pool.get().used {
        return Some(Err(Error::INVALID_VALUE));
    }
    pool.remove();
    Some(Ok(()))
}

/// What a device may do with an imported pool's memory, as `CUmemAccess_flags`; `None` for a handle of something else.
pub fn access(handle: u64, device: &Device) -> Option<u32> {
    let mut table = locked();
    let pool = table.as_mut()?.pool(handle).ok()?;
    Some(pool.rights.of(device.ordinal))
}

/// As [`access`], for memory of the pool; 0 where there is none.
pub fn rights_of_memory(handle: u64, device: i32) -> u32 {
    let table = locked();
    let pool = table.as_ref().and_then(|table| table.pools.get(&handle));
    pool.map_or(0, |pool| pool.rights.of(device))
}

/// Says what a device may do with an imported pool's memory, which ROCr maps to all GPUs. `None` for a handle of something else.
pub fn set_access(handle: u64, device: &'static Device, flags: u32) -> Option<Result<()>> {
    let mut table = locked();
    let pool = table.as_mut()?.pool(handle).ok()?;
    let own = device.ordinal == pool.context.device.ordinal;
    if own && flags != 3 {
        return Some(Err(Error::INVALID_DEVICE));
    }
    if !own && let Err(error) = super::check_access(device, pool.context.device, flags) {
        return Some(Err(error));
    }
    pool.rights = pool.rights.with(device.ordinal, flags);
    Some(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_descriptor_says_whose_pool_it_is_and_cannot_be_changed() {
        let fd = memory_file(&sealed(&[1, 2, 3], POOL)).unwrap();
        assert_eq!(read(fd.as_raw_fd()), Some([1, 2, 3]));
        let file = File::from(fd);
        assert!(file.write_all_at(b"x", 0).is_err());
        assert!(file.set_len(0).is_err());
        assert_eq!(read(file.as_raw_fd()), Some([1, 2, 3]));
    }

    #[test]
    fn what_is_no_descriptor_of_a_pool_is_refused() {
        assert_eq!(read(-1), None);
        assert_eq!(read(0x7fff_fff0), None, "not open");
        let plain = File::open("/proc/self/exe").unwrap();
        assert_eq!(read(plain.as_raw_fd()), None, "a file");
        let other = memory_file(&sealed(&[1, 2, 3], POINTER)).unwrap();
        assert_eq!(read(other.as_raw_fd()), None, "of something else");
        let short = memory_file(b"RGP1").unwrap();
        assert_eq!(read(short.as_raw_fd()), None, "cut short");
    }
}
