//! Device memory of other processes: `cudaIpcGetMemHandle`, `cudaIpcOpenMemHandle`, `cudaIpcCloseMemHandle`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::registry::{Description, HIDDEN_OWNER};
use super::{Entry, Kind, REGISTRY, lookup, pointer_to, unexpected};
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::hsa::{self, IpcHandle};

/// Bytes of a `cudaIpcMemHandle_t`.
pub const HANDLE_SIZE: usize = 64;

/// A decoded handle.
///
/// ```text
///  0..32  ROCr's handle of the block
/// 32..40  offset of the memory in it (0: every allocation is a block of its own)
/// 40..48  size of the memory as requested, which address range queries of importers give
/// 48..56  identity of the exporting process, so that it knows its own handles
/// 56..60  "RGI1"
/// 60..64  checksum of the bytes before: a handle that was cut, mixed up or made up is refused
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    block: IpcHandle,
    offset: u64,
    size: u64,
    exporter: u64,
}

const MAGIC: [u8; 4] = *b"RGI1";

impl Handle {
    /// The bytes that travel.
    pub fn encode(&self) -> [u8; HANDLE_SIZE] {
        let mut bytes = [0; HANDLE_SIZE];
        for (to, from) in bytes.chunks_exact_mut(4).zip(self.block.0) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.offset.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.size.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.exporter.to_le_bytes());
        bytes[56..60].copy_from_slice(&MAGIC);
        let sum = checksum(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a handle; [`Error::INVALID_VALUE`] for bytes that [`Handle::encode`] did not make.
    pub fn decode(bytes: &[u8; HANDLE_SIZE]) -> Result<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[56..60] != MAGIC || word(60) != checksum(&bytes[..60]) {
            return Err(Error::INVALID_VALUE);
        }
        let handle = Self {
            block: IpcHandle(core::array::from_fn(|index| word(index * 4))),
            offset: long(32),
            size: long(40),
            exporter: long(48),
        };
        let end = handle.offset.checked_add(handle.size);
        if handle.size == 0 || end.is_none_or(|end| end > 1 << 47) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(handle)
    }
}

/// FNV-1a, 32 bits.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

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
static EXPORTED: Mutex<Option<HashMap<u64, [u8; HANDLE_SIZE]>>> = Mutex::new(None);

/// An open handle.
struct Import {
    base: u64,
    opened: usize,
    entry: Entry,
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
    if let Some(bytes) = exported.get(&entry.id) {
        return Ok(*bytes);
    }
    let base = pointer_to(entry.base).ok_or(Error::INVALID_VALUE)?;
    // ROCr accepts the block's own extent only, which older releases round up to pages.
    let extent = hsa::memory::pointer_info(entry.base as usize)?.size;
    let block = hsa::ipc::create(base, extent).map_err(|error| {
        log::warn!("memory at {:#x} cannot be exported: {error}", entry.base);
        Error::from(error)
    })?;
    let bytes = Handle {
        block,
        offset: 0,
        size: entry.size,
        exporter: identity(),
    }
    .encode();
    exported.insert(entry.id, bytes);
    Ok(bytes)
}

/// Forgets the handle of a block that is being freed.
pub(super) fn forget_exported(id: u64) {
    if let Some(exported) = locked(&EXPORTED).as_mut() {
        exported.remove(&id);
    }
}

/// Maps another process's memory for `context`; a handle that is open already gives the same address and counts.
///
/// [`Error::INVALID_VALUE`] for bytes that are no handle, [`Error::DEVICE_UNINITIALIZED`] in the exporting process itself,
/// [`Error::INVALID_RESOURCE_HANDLE`] when the exporter has freed the memory or ended, or where ROCr could not copy to it.
pub fn open(context: &'static Context, bytes: &[u8; HANDLE_SIZE]) -> Result<u64> {
    let handle = Handle::decode(bytes)?;
    if handle.exporter == identity() {
        return Err(Error::DEVICE_UNINITIALIZED);
    }
    let mut imported = locked(&IMPORTED);
    let imported = imported.get_or_insert_default();
    if let Some(import) = imported.get_mut(bytes) {
        import.opened += 1;
        return Ok(import.base);
    }
    let extent = usize::try_from(handle.offset + handle.size).map_err(|_| Error::INVALID_VALUE)?;
    let mapping = hsa::ipc::attach(&handle.block, extent).map_err(|error| {
        log::info!("memory of another process cannot be attached: {error}");
        Error::INVALID_RESOURCE_HANDLE
    })?;
    let base = mapping.as_ptr().expose_provenance() as u64 + handle.offset;
    let mut description = Description::device(Kind::Imported, base, handle.size, context);
    let owner_visible = hsa::memory::pointer_info(mapping.as_ptr().addr()).is_ok_and(|info| info.owner_visible);
    if !owner_visible && std::env::var_os(DISCOVER).is_some_and(|value| value == "1") {
        // ROCr would look for the owner in every copy, and lose the copy: see `Stream::copy`.
        log::warn!(
            "memory of a GPU that ROCR_VISIBLE_DEVICES hides cannot be opened with {DISCOVER}=1: unset that variable"
        );
        // SAFETY: nobody has seen the mapping.
        let _ = unsafe { hsa::ipc::detach(mapping) };
        return Err(Error::INVALID_RESOURCE_HANDLE);
    }
    description.flags = if owner_visible { 0 } else { HIDDEN_OWNER };
    let entry = REGISTRY.insert(description).map_err(|conflict| {
        // SAFETY: nobody has seen the mapping.
        let _ = unsafe { hsa::ipc::detach(mapping) };
        unexpected(conflict, &description)
    })?;
    log::debug!(
        "{context:?} attached {} bytes of another process{} at {base:#x}",
        handle.size,
        if owner_visible {
            ""
        } else {
            " and of a GPU that is hidden here"
        }
    );
    imported.insert(*bytes, Import { base, opened: 1, entry });
    Ok(base)
}

/// Ends one [`open`]; the last one unmaps. [`Error::INVALID_VALUE`] for an address that `open` did not give.
pub fn close(address: u64) -> Result<()> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Imported && entry.base == address);
    let entry = entry.ok_or(Error::INVALID_VALUE)?;
    {
        let mut imported = locked(&IMPORTED);
        let import = imported
            .iter_mut()
            .flatten()
            .map(|(_, import)| import)
            .find(|import| import.base == address);
        let import = import.ok_or(Error::INVALID_VALUE)?;
        if import.opened > 1 {
            import.opened -= 1;
            return Ok(());
        }
    }
    entry.context.synchronize()?;
    // Opened again while we waited: then that use keeps it.
    let mut imported = locked(&IMPORTED);
    let all = imported.get_or_insert_default();
    let key = all
        .iter()
        .find(|(_, import)| import.base == address)
        .map(|(key, _)| *key)
        .ok_or(Error::INVALID_VALUE)?;
    match all.get_mut(&key) {
        Some(import) if import.opened > 1 => {
            import.opened -= 1;
            return Ok(());
        }
        _ => {}
    }
    let import = all.remove(&key).ok_or(Error::INVALID_VALUE)?;
    REGISTRY.remove(import.base, import.entry.id);
    detach(&key, import.base)
}

/// Unmaps what a context that ends had open.
pub(super) fn forget_imported(base: u64) -> hsa::Result<()> {
    let mut imported = locked(&IMPORTED);
    let all = imported.get_or_insert_default();
    let key = all.iter().find(|(_, import)| import.base == base).map(|(key, _)| *key);
    if let Some(key) = key {
        all.remove(&key);
        let _ = detach(&key, base);
    }
    Ok(())
}

fn detach(key: &[u8; HANDLE_SIZE], base: u64) -> Result<()> {
    let offset = Handle::decode(key)?.offset;
    let mapping = pointer_to(base - offset).ok_or(Error::INVALID_VALUE)?;
    // SAFETY: the mapping is out of both tables and its context is idle.
    unsafe { hsa::ipc::detach(mapping) }.map_err(|error| {
        log::warn!("memory of another process at {base:#x} cannot be detached: {error}");
        Error::UNKNOWN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Handle {
        Handle {
            block: IpcHandle([1, 2, 3, 4, 5, 6, 0x8000_0007, 8]),
            offset: 0x1000,
            size: 4_194_305,
            exporter: 0x0123_4567_89ab_cdef,
        }
    }

    #[test]
    fn a_handle_survives_its_journey() {
        assert_eq!(Handle::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let good = sample().encode();
        for index in 0..HANDLE_SIZE {
            for flip in [1u8, 0x80, 0xff] {
                let mut bad = good;
                bad[index] ^= flip;
                assert_eq!(
                    Handle::decode(&bad),
                    Err(Error::INVALID_VALUE),
                    "byte {index} with {flip:#x} flipped"
                );
            }
        }
    }

    #[test]
    fn bytes_that_are_no_handle_are_refused() {
        for bytes in [[0; HANDLE_SIZE], [0xff; HANDLE_SIZE], [0xaa; HANDLE_SIZE]] {
            assert_eq!(Handle::decode(&bytes), Err(Error::INVALID_VALUE));
        }
        for (offset, size) in [(0, 0), (u64::MAX, 2), (1 << 47, 1), (0, u64::MAX)] {
            let handle = Handle {
                offset,
                size,
                ..sample()
            };
            assert_eq!(
                Handle::decode(&handle.encode()),
                Err(Error::INVALID_VALUE),
                "{handle:?}"
            );
        }
    }
}
