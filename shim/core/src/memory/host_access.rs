//! Whether the CPU may touch device memory where the card's BAR would let it.
//!
//! ROCr maps the memory of a large-BAR card readable and writable, and HSA-side libraries use that: libfabric copies short
//! messages out of device memory with the CPU. CUDA programs know no such thing, and UCX's CUDA support depends on it: it
//! learns of allocations by patching the driver's entry points, of those made before it looked by scanning the process's
//! map for regions that nobody may access, and takes whatever else it meets for host memory, which ends in
//! `process_vm_readv: Bad address`. So device memory is open to the CPU until our entry points turn out to be patched;
//! from then on it is closed, blocks that exist already included.
//!
//! The GPU's own page tables are not concerned: closing changes the CPU's mapping only. A block is opened again before it goes
//! back to ROCr, which may hand its pages to others and write to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Entry, Kind, REGISTRY, lookup};
use crate::attention;
use crate::config::{self, HostAccess};
use crate::device::Device;

/// The blocks that would be closed and that the registry does not know as one piece of memory each, as it knows those of [`Kind::Device`]:
/// first byte and size. Held for map operations, page-table changes and the host's own accesses only.
static BLOCKS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Device memory is closed, or stays open for good.
static SETTLED: AtomicBool = AtomicBool::new(false);

/// Device memory is closed.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Closes device memory, unless the configuration keeps it open. To be called when entry points turn out to be patched
/// (`api::guard` looks at every call); once is enough, and ends the looking.
#[cold]
pub fn close() {
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: none is watched from here on.
    unsafe { attention::watch(None) };
    if SETTLED.swap(true, Ordering::Relaxed) {
        return;
    }
    if *config::HOST_ACCESS.get() == HostAccess::Always {
        return;
    }
    log::info!("the allocation calls are hooked: closing device memory to the CPU, as the hooks expect of CUDA");
    CLOSED.store(true, Ordering::Relaxed);
    for (&address, &size) in blocks.iter() {
        protect(address, size, libc::PROT_NONE);
    }
    // Whoever enters a block after this look finds memory closed.
    for entry in REGISTRY.entries(is_known) {
        protect(entry.base, entry.size, libc::PROT_NONE);
    }
}

/// A block that the registry alone keeps.
fn is_known(entry: &Entry) -> bool {
    entry.kind == Kind::Device && entry.context.device.host_accessible
}

/// As [`enter`], for an entry of [`Kind::Device`], which is in the registry by now. Most allocations are such: nothing is noted twice.
#[inline]
pub fn enter_known(entry: &Entry) {
    if closed() && is_known(entry) {
        protect(entry.base, entry.size, libc::PROT_NONE);
    }
}

/// As [`leave`], for an entry of [`enter_known`] that is out of the registry.
pub fn leave_known(entry: &Entry) {
    if !is_known(entry) {
        return;
    }
    // Whoever found it in the registry before has done with it when the lock is free.
    let _blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if closed() {
        protect(entry.base, entry.size, libc::PROT_READ | libc::PROT_WRITE);
    }
}

/// Takes note of a new block of device memory that the CPU could reach, and closes it if that is the rule by now.
pub fn enter(address: u64, size: u64) {
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    blocks.insert(address, size);
    if closed() {
        protect(address, size, libc::PROT_NONE);
    }
}

/// Forgets a block that is about to go back to ROCr, and opens it.
pub fn leave(address: u64) {
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(size) = blocks.remove(&address) else { return };
    if closed() {
        protect(address, size, libc::PROT_READ | libc::PROT_WRITE);
    }
}

/// Reads up to 8 bytes of device memory with the CPU; `None` unless they lie in a block that is open to it. `address` is a multiple
/// of `bytes` where that is 4 or 8, which are then read at once.
pub fn load(address: u64, bytes: u64) -> Option<u64> {
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if bytes > 8 || !is_open(&blocks, address, bytes as usize) {
        return None;
    }
    let mut word = [0; 8];
    // SAFETY: the block is mapped readable, and neither freed nor closed while `blocks` is locked.
    unsafe {
        match bytes {
            8 => word = (address as *const u64).read_volatile().to_le_bytes(),
            4 => word[..4].copy_from_slice(&(address as *const u32).read_volatile().to_le_bytes()),
            _ => core::ptr::copy_nonoverlapping(address as *const u8, word.as_mut_ptr(), bytes as usize),
        }
    }
    core::sync::atomic::fence(Ordering::Acquire);
    Some(u64::from_le_bytes(word))
}

/// Reads device memory with the CPU; false unless it lies in a block that is open to it.
pub fn read(address: u64, bytes: &mut [u8]) -> bool {
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_open(&blocks, address, bytes.len()) {
        return false;
    }
    // SAFETY: the block is mapped readable, and neither freed nor closed while `blocks` is locked.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    core::sync::atomic::fence(Ordering::Acquire);
    true
}

/// Writes memory of `device` with the CPU; false unless it lies in a block that is open to it, and the device says how such writes become
/// visible to it. Whatever the device begins later sees them. Four or eight bytes at a multiple of their number are written at once.
pub fn store(device: &Device, address: u64, bytes: &[u8]) -> bool {
    let Some(flush) = device.agent.hdp_flush else {
        return false;
    };
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_open(&blocks, address, bytes.len()) {
        return false;
    }
    // SAFETY: the block is mapped writable, and neither freed nor closed while `blocks` is locked; words are aligned.
    unsafe {
        match *bytes {
            [a, b, c, d] if address.is_multiple_of(4) => {
                (address as *mut u32).write_volatile(u32::from_le_bytes([a, b, c, d]));
            }
            [a, b, c, d, e, f, g, h] if address.is_multiple_of(8) => {
                (address as *mut u64).write_volatile(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            _ => core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()),
        }
    }
    // Such memory is write-combined: the stores leave the processor here, and the device's side of the bus with the flush.
    core::sync::atomic::fence(Ordering::SeqCst);
    flush.flush();
    true
}

/// Whether a range lies in a block that is open to the CPU.
fn is_open(blocks: &BTreeMap<u64, u64>, address: u64, bytes: usize) -> bool {
    if closed() {
        return false;
    }
    if let Some(entry) = lookup(address).filter(is_known) {
        return entry.bytes_left(address) >= bytes as u64;
    }
    let block = blocks.range(..=address).next_back();
    block.is_some_and(|(base, size)| address - base + bytes as u64 <= *size)
}

/// Whether blocks are closed to the CPU: by the hooks that were found, or from the start.
fn closed() -> bool {
    CLOSED.load(Ordering::Relaxed) || *config::HOST_ACCESS.get() == HostAccess::Never
}

fn protect(address: u64, size: u64, protection: i32) {
    const PAGE: u64 = 4096;
    let length = size.next_multiple_of(PAGE) as usize;
    let start = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: whole pages of a block of ours: ROCr gives blocks pages of their own, and ours follows device pointers with `BLOCKS` locked only.
    if unsafe { libc::mprotect(start, length, protection) } != 0 {
        let error = std::io::Error::last_os_error();
        log::warn!("{length} bytes of device memory at {address:#x} cannot be protected: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_block_is_left_alone() {
        // No page is touched: the address is nobody's.
        leave(0x1000);
        assert!(!CLOSED.load(Ordering::Relaxed));
    }
}
