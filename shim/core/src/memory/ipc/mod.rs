//! Device memory of other processes: `cudaIpcGetMemHandle`, `cudaIpcOpenMemHandle`, `cudaIpcCloseMemHandle`.

mod handle;
mod published;

use core::ptr::NonNull;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::registry::{Description, HIDDEN_OWNER};
use super::{Kind, REGISTRY, lookup, pointer_to, unexpected};
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::hsa;

pub use handle::HANDLE_SIZE;
use handle::Handle;
pub(crate) use handle::{checksum, is_sealed, long, seal};
pub use published::{Published, read as published};

/// ROCr's debugging switch that makes it look up the owners of all memory that it copies.
const DISCOVER: &str = "HSA_DISCOVER_COPY_AGENTS";

/// A number that no other process of the node has (process ids repeat across containers).
pub(crate) fn identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| {
        let [a, b, c, d, e, f, g, h, ..] = random();
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    })
}

/// 16 random bytes; where the kernel has none, bytes that no other process of the node makes at this moment.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer has 16 bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != 16 {
        let time = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let unique = u128::from(std::process::id()) << 96 ^ time.as_nanos();
        bytes = (unique ^ unique.rotate_left(64)).to_ne_bytes();
    }
    bytes
}

/// Handles made so far, by buffer id: ROCr makes one per block and use, and each pins the block in the kernel.
static EXPORTED: Mutex<Option<HashMap<u64, Published>>> = Mutex::new(None);

/// How many those are: without any, a free has nothing to forget. Changed with `EXPORTED` locked.
static EXPORTS: AtomicUsize = AtomicUsize::new(0);

/// An open handle.
struct Import {
    attached: Attached,
    opened: usize,
    /// Of its entry in the registry.
    id: u64,
}

impl Import {
    fn base(&self) -> u64 {
        self.attached.base()
    }
}

/// Open handles, by their bytes.
static IMPORTED: Mutex<Option<HashMap<[u8; HANDLE_SIZE], Import>>> = Mutex::new(None);

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of the whole allocation that holds `address`: the same bytes each time, and for every address in it.
/// [`Error::INVALID_VALUE`] for memory that is not this process's own device memory.
pub fn export(address: u64) -> Result<[u8; HANDLE_SIZE]> {
    let entry = lookup(address)
        .filter(|entry| entry.kind == Kind::Device)
        .ok_or(Error::INVALID_VALUE)?;
    let mut exported = locked(&EXPORTED);
    let exported = exported.get_or_insert_default();
    if let Some(known) = exported.get(&entry.id) {
        return Ok(known.bytes);
    }
    let made = publish(entry.base, entry.size)?;
    let bytes = made.bytes;
    exported.insert(entry.id, made);
    EXPORTS.store(exported.len(), Ordering::Release);
    Ok(bytes)
}

/// Exports the block of ROCr's that begins at `base`, of which importers may see `size` bytes.
///
/// # Errors
/// What ROCr's refusal means, or MEMORY_ALLOCATION where there is no shared memory to publish the handle in.
pub(in crate::memory) fn publish(base: u64, size: u64) -> Result<Published> {
    let address = pointer_to(base).ok_or(Error::INVALID_VALUE)?;
    // ROCr accepts the block's own extent only, which older releases round up to pages.
    let extent = hsa::memory::pointer_info(base as usize)?.size;
    let block = hsa::ipc::create(address, extent).map_err(|error| {
        log::warn!("memory at {base:#x} cannot be exported: {error}");
        Error::from(error)
    })?;
    Published::new(Handle {
        block,
        slot: 0,
        size,
        exporter: identity(),
    })
}

/// Forgets the handle of a block that is being freed.
pub(super) fn forget_exported(id: u64) {
    if EXPORTS.load(Ordering::Acquire) == 0 {
        return;
    }
    if let Some(exported) = locked(&EXPORTED).as_mut() {
        exported.remove(&id);
        EXPORTS.store(exported.len(), Ordering::Release);
    }
}

/// Whether bytes are a handle, of whatever memory and whether that is still there or not.
pub fn is_handle(bytes: &[u8; HANDLE_SIZE]) -> bool {
    Handle::decode(bytes).is_ok()
}

/// Another process's block, mapped into this one. Dropping it ends the mapping, which nothing uses any more.
#[derive(Debug)]
pub(in crate::memory) struct Attached {
    mapping: NonNull<u8>,
    size: u64,
    /// The GPU that owns the memory is one that this process sees.
    pub owner_visible: bool,
}

// SAFETY: an address; the mapping is used by GPUs.
unsafe impl Send for Attached {}

impl Attached {
    /// Maps the block behind a handle.
    ///
    /// # Errors
    /// INVALID_VALUE for bytes that are no handle, DEVICE_UNINITIALIZED in the exporting process itself, INVALID_RESOURCE_HANDLE for a
    /// handle that nobody has published (the exporter has freed the memory or ended), or where ROCr could not copy to it.
    pub fn new(bytes: &[u8; HANDLE_SIZE]) -> Result<Self> {
        let handle = Handle::decode(bytes)?;
        if handle.exporter == identity() {
            return Err(Error::DEVICE_UNINITIALIZED);
        }
        // Freed meanwhile, or made up.
        if published::read(handle.exporter, handle.slot)? != *bytes {
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        let mapping = hsa::ipc::attach(&handle.block, handle.size as usize).map_err(|error| {
            log::info!("memory of another process cannot be attached: {error}");
            Error::INVALID_RESOURCE_HANDLE
        })?;
        let about = hsa::memory::pointer_info(mapping.as_ptr().addr());
        let attached = Self {
            mapping,
            size: handle.size,
            owner_visible: about.is_ok_and(|info| info.owner_visible),
        };
        if about.is_ok_and(|info| (info.size as u64) < handle.size) {
            log::warn!("memory of another process is smaller than its handle says");
            return Err(Error::INVALID_VALUE);
        }
        if !attached.owner_visible && std::env::var_os(DISCOVER).is_some_and(|value| value == "1") {
            // ROCr would look for the owner in every copy, and lose the copy: see `Stream::copy`.
            log::warn!(
                "memory of a GPU that ROCR_VISIBLE_DEVICES hides cannot be opened with {DISCOVER}=1: unset that variable"
            );
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        Ok(attached)
    }

    /// First byte.
    pub fn base(&self) -> u64 {
        self.mapping.as_ptr().expose_provenance() as u64
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: whoever drops it has taken it out of every table, and its users are done.
        if let Err(error) = unsafe { hsa::ipc::detach(self.mapping) } {
            log::warn!(
                "memory of another process at {:#x} cannot be detached: {error}",
                self.base()
            );
        }
    }
}

/// Maps another process's memory for `context`; a handle that is open already gives the same address and counts.
///
/// # Errors
/// As [`Attached::new`].
pub fn open(context: &'static Context, bytes: &[u8; HANDLE_SIZE]) -> Result<u64> {
    let mut imported = locked(&IMPORTED);
    let imported = imported.get_or_insert_default();
    if let Some(import) = imported.get_mut(bytes) {
        import.opened += 1;
        return Ok(import.base());
    }
    let attached = Attached::new(bytes)?;
    let (base, size) = (attached.base(), attached.size());
    let mut description = Description::device(Kind::Imported, base, size, context);
    description.flags = if attached.owner_visible { 0 } else { HIDDEN_OWNER };
    let entry = REGISTRY
        .insert(description)
        .map_err(|conflict| unexpected(conflict, &description))?;
    let whose = if attached.owner_visible {
        ""
    } else {
        " and of a GPU that is hidden here"
    };
    log::debug!("{context:?} attached {size} bytes of another process{whose} at {base:#x}");
    let import = Import {
        attached,
        opened: 1,
        id: entry.id,
    };
    imported.insert(*bytes, import);
    Ok(base)
}

/// Ends one [`open`]; the last one unmaps. [`Error::INVALID_VALUE`] for an address that `open` did not give.
pub fn close(address: u64) -> Result<()> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Imported && entry.base == address);
    let entry = entry.ok_or(Error::INVALID_VALUE)?;
    if close_one_of_several(address)? {
        return Ok(());
    }
    entry.context.synchronize()?;
    // Opened again while we waited: then that use keeps it.
    if close_one_of_several(address)? {
        return Ok(());
    }
    let import = take(address).ok_or(Error::INVALID_VALUE)?;
    REGISTRY.remove(import.base(), import.id);
    Ok(())
}

/// Counts one use of an open handle less, unless it is the last. [`Error::INVALID_VALUE`] for an address that is none's.
fn close_one_of_several(address: u64) -> Result<bool> {
    let mut imported = locked(&IMPORTED);
    let import = imported
        .iter_mut()
        .flatten()
        .map(|(_, import)| import)
        .find(|import| import.base() == address);
    let import = import.ok_or(Error::INVALID_VALUE)?;
    let several = import.opened > 1;
    if several {
        import.opened -= 1;
    }
    Ok(several)
}

fn take(address: u64) -> Option<Import> {
    let mut imported = locked(&IMPORTED);
    let all = imported.as_mut()?;
    let key = all
        .iter()
        .find(|(_, import)| import.base() == address)
        .map(|(key, _)| *key)?;
    all.remove(&key)
}

/// Unmaps what a context that ends had open.
pub(super) fn forget_imported(base: u64) -> hsa::Result<()> {
    drop(take(base));
    Ok(())
}
