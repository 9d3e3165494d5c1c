//! `cuMemGetHandleForAddressRange`: device memory as a dma-buf, for network cards.

use std::os::fd::{FromRawFd, OwnedFd};

use super::{Kind, lookup, vmm};
use crate::abi::{Error, Result};
use crate::hsa;

/// Exports `[address, address + size)` of device memory. The descriptor is the caller's.
///
/// CUDA's call has no way to give an offset: its users take the descriptor to begin at `address`. ROCr's begins at its own
/// block, so only ranges that begin there can be exported; others are [`Error::NOT_SUPPORTED`], not silently wrong data.
pub fn export(address: u64, size: usize) -> Result<OwnedFd> {
    const PAGE: u64 = 4096;
    let entry = lookup(address).ok_or(Error::INVALID_VALUE)?;
    if size == 0 || !address.is_multiple_of(PAGE) || !(size as u64).is_multiple_of(PAGE) {
        return Err(Error::INVALID_VALUE);
    }
    let room = entry.size.next_multiple_of(PAGE) - (address - entry.base);
    if size as u64 > room {
        return Err(Error::INVALID_VALUE);
    }
    // Recorded; ROCr does not export it, either.
    if !entry.kind.is_device() {
        return Err(Error::INVALID_VALUE);
    }
    if entry.kind == Kind::Mapping {
        return vmm::export_mapped(address);
    }
    // ROCr crashes on memory of other processes; memory of pools begins somewhere in its block.
    if entry.kind != Kind::Device || !hsa::get()?.dma_buf {
        return Err(Error::NOT_SUPPORTED);
    }
    let size = size.min((entry.size - (address - entry.base)) as usize);
    let (fd, offset) = hsa::memory::export_dma_buf(address as usize, size)?;
    // SAFETY: ROCr gave the descriptor to us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    if offset != 0 {
        log::debug!("memory at {address:#x} begins {offset} bytes into its dma-buf, which CUDA's call cannot say");
        return Err(Error::NOT_SUPPORTED);
    }
    Ok(fd)
}
