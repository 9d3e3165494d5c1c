//! Memory: the allocator, the registry of all of it, host memory, pointer queries, and memory shared between processes.
//!
//! Every `cudaMalloc` is one block of ROCr, asked for at the requested size, so that HSA and CUDA callers are told the same
//! extent. Order of a free, always: wait for the context's streams, take the block out of the registry, free it in ROCr,
//! where other libraries' deallocation callbacks then find it gone. No lock of ours is held in that last step.

pub mod array;
pub mod dma_buf;
mod forked_pages;
pub mod graph;
pub mod host;
pub mod host_access;
pub mod hsa_view;
pub mod ipc;
pub mod managed;
pub mod pointer;
pub mod pool;
pub mod registry;
pub mod rights;
pub mod texture;
pub mod unlisted;
pub mod vmm;

use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::{Error, Result};
use crate::device::{Context, Device, peer};
use crate::graph::{Operation, capture};
use crate::hsa::{self, Agent};
use crate::stream::Stream;
use registry::{Conflict, Description};
pub use registry::{Entry, Glance, Kind, REGISTRY, glance, lookup};

/// Rows of pitched memory begin at multiples of this (recorded).
pub const PITCH_ALIGNMENT: usize = 512;

/// What ROCr's small blocks lie in, and so the extent that a pointer query gives as their mapping (as NVIDIA's do).
pub const MAPPING_GRANULE: u64 = 2 << 20;

/// Allocates `size` bytes (not 0) of device memory for `context`. [`Error::MEMORY_ALLOCATION`] when there is not enough.
pub fn allocate(context: &'static Context, size: usize) -> Result<Entry> {
    let device = context.device;
    let address = device.pool.allocate(size).or_else(|_| {
        // Stream-ordered pools may hold what nobody uses.
        pool::trim_unused(device);
        device.pool.allocate(size)
    });
    let address = address.map_err(|error| out_of_memory(size, device, error))?;
    // After this line an early return must give the block back.
    let undo = |error| {
        // SAFETY: nobody has seen the block.
        let _ = unsafe { hsa::memory::free(address) };
        error
    };
    let readers = device.readers.load(Ordering::Acquire);
    share(device, readers, address).map_err(|error| undo(error.into()))?;
    let description = Description::device(Kind::Device, address.as_ptr().addr() as u64, size as u64, context);
    let entry = REGISTRY
        .insert(description)
        .map_err(|conflict| undo(unexpected(conflict, &description)))?;
    device.count_allocated(size);
    host_access::enter_known(&entry);
    let now = device.readers.load(Ordering::Acquire);
    if now != readers {
        // Another thread enabled peer access meanwhile and may not have seen this block.
        share(device, now, address)?;
    }
    log::trace!("{device:?}: {size} bytes at {:#x}, buffer {}", entry.base, entry.id);
    Ok(entry)
}

/// Gives a new block to the devices of the mask `readers`. Its own device has it, and so has the CPU if the card's BAR allows: ROCr
/// maps both when it allocates.
fn share(device: &'static Device, readers: u64, address: NonNull<u8>) -> hsa::Result<()> {
    if readers & !peer::bit(device) == 0 {
        return Ok(());
    }
    hsa::memory::allow_access(&users(device, readers), address)
}

fn users(device: &'static Device, readers: u64) -> Vec<&'static Agent> {
    let mut agents = vec![device.agent];
    if device.host_accessible {
        agents.push(device.host);
    }
    let others = crate::device::all().unwrap_or_default().iter();
    agents.extend(
        others
            .filter(|other| readers & peer::bit(other) != 0)
            .map(|other| other.agent),
    );
    agents
}

fn out_of_memory(size: usize, device: &Device, error: hsa::Error) -> Error {
    log::debug!(
        "{device:?}: no {size} bytes ({error}); {} are free",
        device.free_memory()
    );
    Error::MEMORY_ALLOCATION
}

/// ROCr never gives an address twice, nor one outside the address space.
fn unexpected(conflict: Conflict, description: &Description) -> Error {
    log::error!("{description:?} cannot be entered: {conflict:?}");
    Error::UNKNOWN
}

/// As [`unexpected`], for a range of ours.
fn unexpected_range(conflict: Conflict, base: u64, size: u64) -> Error {
    log::error!("{size} bytes at {base:#x} cannot be entered: {conflict:?}");
    Error::UNKNOWN
}

/// Allocates `height` rows of at least `width` bytes (neither 0); gives the block and the pitch.
///
/// [`Error::INVALID_VALUE`] when the size does not fit the address space, [`Error::MEMORY_ALLOCATION`] when the memory does not.
pub fn allocate_pitched(context: &'static Context, width: usize, height: usize) -> Result<(Entry, usize)> {
    let pitch = width
        .checked_next_multiple_of(PITCH_ALIGNMENT)
        .ok_or(Error::INVALID_VALUE)?;
    let size = pitch.checked_mul(height).ok_or(Error::INVALID_VALUE)?;
    // The largest pitch of CUDA's copies, and so of what may be allocated for them.
    if pitch > 1 << 40 {
        return Err(Error::INVALID_VALUE);
    }
    Ok((allocate(context, size)?, pitch))
}

/// Frees memory of [`allocate`] or [`managed::allocate`]; `address` must be its first byte. [`Error::INVALID_VALUE`] for anything else, and for memory
/// that was freed.
pub fn free(address: u64) -> Result<()> {
    let entry = lookup(address).filter(|entry| entry.base == address);
    let entry = entry.ok_or(Error::INVALID_VALUE)?;
    let imported = pool::share::is_imported(&entry);
    if !imported && !matches!(entry.kind, Kind::Device | Kind::Managed | Kind::Pool | Kind::Graph) {
        return Err(Error::INVALID_VALUE);
    }
    entry.context.synchronize()?;
    match entry.kind {
        Kind::Graph => crate::graph::memory::free(address),
        Kind::Pool => pool::free_unused(address),
        _ if imported => {
            pool::share::end_import(&entry)?;
            release(&entry);
            Ok(())
        }
        _ => {
            let entry = REGISTRY.remove(entry.base, entry.id).ok_or(Error::INVALID_VALUE)?;
            release(&entry);
            Ok(())
        }
    }
}

/// `cuMemFreeAsync`: frees memory in the order of `stream`. It is unknown at once; a block of [`allocate`] or
/// [`managed::allocate`] goes back to ROCr when the stream has got there.
///
/// [`Error::INVALID_VALUE`] as [`free`].
pub fn free_in_order(address: u64, stream: &Arc<Stream>) -> Result<()> {
    if let Some(sequence) = capture::intercept_unsafe(stream)? {
        // Recorded: in a capture only memory of graphs can be freed.
        let block = crate::graph::memory::at(address).filter(|block| block.claim_free_node());
        return sequence.add(stream, Operation::Free(block.ok_or(Error::INVALID_VALUE)?));
    }
    // The usual case, which asks the registry once.
    if pool::free(address, stream)? {
        return Ok(());
    }
    match lookup(address).filter(|entry| entry.base == address) {
        // What is enqueued later knows no more of it; the block itself stays with the graph.
        Some(entry) if entry.kind == Kind::Graph => crate::graph::memory::free(address),
        Some(entry) if pool::share::is_imported(&entry) => {
            pool::share::end_import(&entry)?;
            release_in_order(entry, stream)
        }
        Some(entry) if matches!(entry.kind, Kind::Device | Kind::Managed) => {
            let entry = REGISTRY.remove(entry.base, entry.id).ok_or(Error::INVALID_VALUE)?;
            release_in_order(entry, stream)
        }
        _ => Err(Error::INVALID_VALUE),
    }
}

/// As [`release`], when `stream` has got there.
fn release_in_order(entry: Entry, stream: &Stream) -> Result<()> {
    stream.host_call(move |fault| {
        // After a fault the device may still use it.
        if fault.is_none() {
            release(&entry);
        }
    })
}

/// Gives back what an entry that is out of the registry stood for.
fn release(entry: &Entry) {
    let Some(address) = pointer_to(entry.base) else { return };
    let result = match entry.kind {
        Kind::Device => {
            ipc::forget_exported(entry.id);
            host_access::leave_known(entry);
            entry.context.device.count_freed(entry.size as usize);
            // SAFETY: the caller took the entry out of the registry, so nobody else frees it; streams are idle.
            unsafe { hsa::memory::free(address) }
        }
        Kind::Host => {
            let spare = forked_pages::detach(address, entry.size as usize);
            // SAFETY: as above.
            let freed = unsafe { hsa::memory::free(address) };
            // Only now that no GPU sees the pages.
            forked_pages::keep(spare);
            freed
        }
        Kind::Managed => {
            managed::forget(entry);
            // SAFETY: as above.
            unsafe { hsa::memory::free(address) }
        }
        Kind::Registered => hsa::memory::unlock(address),
        Kind::Imported if entry.more != 0 => {
            pool::share::forget(entry);
            Ok(())
        }
        Kind::Imported => ipc::forget_imported(entry.base),
        // The module owns its block; pools and mappings end on their own ways.
        Kind::Variable | Kind::Pool | Kind::Mapping | Kind::HostMapping | Kind::Graph => Ok(()),
    };
    if let Err(error) = result {
        log::warn!("memory at {:#x} could not be given back: {error}", entry.base);
    }
}

/// Takes everything that a context owns out of the registry: later users of its addresses find unknown memory.
pub(crate) fn take_all(context: &'static Context) -> Vec<Entry> {
    // Neither stream-ordered memory nor mappings are a context's.
    let owned = |entry: &Entry| entry.context == context && entry.kind != Kind::Pool && !entry.kind.is_mapping();
    let owned = REGISTRY.entries(owned);
    owned
        .iter()
        .filter_map(|entry| REGISTRY.remove(entry.base, entry.id))
        .collect()
}

/// Frees what [`take_all`] took; nothing on the device uses it any more.
pub(crate) fn release_all(entries: &[Entry]) {
    entries.iter().for_each(release);
}

/// Maps all memory of `owner`, that of today and of later, to `reader`'s GPU. Other libraries (libfabric, UCX) give access to
/// further agents behind our back, so access is only ever added.
pub(crate) fn grant(owner: &'static Device, reader: &'static Device) -> Result<()> {
    owner.readers.fetch_or(peer::bit(reader), Ordering::AcqRel);
    let agents = users(owner, owner.readers.load(Ordering::Acquire));
    for entry in REGISTRY.entries(|entry| entry.kind == Kind::Device && entry.context.device.ordinal == owner.ordinal) {
        let Some(address) = pointer_to(entry.base) else {
            continue;
        };
        let Err(error) = hsa::memory::add_access(&agents, address) else {
            continue;
        };
        // Freed meanwhile is no failure.
        if lookup(entry.base).is_some_and(|now| now.id == entry.id) {
            log::warn!("memory at {:#x} cannot be mapped to {reader:?}: {error}", entry.base);
            return Err(error.into());
        }
    }
    // Graphs' blocks are in the registry only while they live.
    crate::graph::memory::for_each_on(owner, |base| {
        if let Some(address) = pointer_to(base)
            && let Err(error) = hsa::memory::add_access(&agents, address)
        {
            log::warn!("memory of a graph at {base:#x} cannot be mapped to {reader:?}: {error}");
        }
    });
    Ok(())
}

/// Enters a variable of a loaded module, which lies in a block of the module's own.
pub fn enter_variable(context: &'static Context, base: u64, size: u64) -> Result<Entry> {
    let description = Description::device(Kind::Variable, base, size, context);
    REGISTRY
        .insert(description)
        .map_err(|conflict| unexpected(conflict, &description))
}

/// Takes out a variable of [`enter_variable`].
pub fn leave_variable(entry: &Entry) {
    REGISTRY.remove(entry.base, entry.id);
}

/// The block that holds `address`, as `cuMemGetAddressRange` gives it: its first byte and its size.
///
/// [`Error::SYMBOL_NOT_FOUND`] (`CUDA_ERROR_NOT_FOUND`) for memory that CUDA does not know or that the calling thread's context
/// cannot access.
pub fn address_range(address: u64) -> Result<(u64, u64)> {
    let entry = lookup(address)
        .filter(pointer::accessible)
        .ok_or(Error::SYMBOL_NOT_FOUND)?;
    Ok((entry.base, entry.size))
}

/// An address as a pointer for HSA; `None` for 0.
fn pointer_to(address: u64) -> Option<NonNull<u8>> {
    NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize))
}
