//! A block of a pool's memory, in units of 32 MiB.

use core::ptr::NonNull;
use std::sync::OnceLock;

use super::arena;
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::hsa::{self, Agent};
use crate::memory::host_access;
use crate::memory::ipc::{self, Published};
use crate::memory::rights::Rights;

/// Segments are multiples of this (recorded).
pub(super) const UNIT: u64 = 32 << 20;

/// One block of ROCr.
pub(super) struct Segment {
    base: u64,
    size: u64,
    device: &'static Device,
    /// Its handle, once other processes may import parts of it.
    published: OnceLock<Published>,
}

impl Segment {
    /// Allocates `size` bytes, a multiple of [`UNIT`], for the users in `rights`.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is not enough.
    pub fn new(device: &'static Device, size: u64, rights: Rights) -> Result<Self> {
        let address = device
            .pool
            .allocate(size as usize)
            .map_err(|_| Error::MEMORY_ALLOCATION)?;
        let segment = Self {
            base: address.as_ptr().expose_provenance() as u64,
            size,
            device,
            published: OnceLock::new(),
        };
        let agents = users(device, rights);
        if agents.len() > 1
            && let Err(error) = hsa::memory::allow_access(&agents, address)
        {
            // SAFETY: nobody has seen the block.
            let _ = unsafe { hsa::memory::free(address) };
            return Err(error.into());
        }
        device.count_allocated(size as usize);
        if device.host_accessible {
            host_access::enter(segment.base, size);
        }
        log::debug!("{device:?}: a pool has {size} bytes more, at {:#x}", segment.base);
        Ok(segment)
    }

    /// First byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Lets the users in `rights` reach the block, too; access is only ever added.
    ///
    /// # Errors
    /// What ROCr's refusal means to CUDA.
    pub fn share(&self, rights: Rights) -> Result<()> {
        let Some(address) = self.address() else { return Ok(()) };
        hsa::memory::add_access(&users(self.device, rights), address).map_err(Into::into)
    }

    /// Lets other processes of this user import the block; gives the slot of its handle, the same each time. The pool's lock is held.
    ///
    /// # Errors
    /// As publishing any block.
    pub fn publish(&self) -> Result<u64> {
        if self.published.get().is_none() {
            let _ = self.published.set(ipc::publish(self.base, self.size)?);
        }
        self.published.get().map(Published::slot).ok_or(Error::UNKNOWN)
    }

    fn address(&self) -> Option<NonNull<u8>> {
        arena::pointer(self.base)
    }

    /// Gives the block back to ROCr, which may run other libraries' callbacks: no lock may be held. Nothing uses it any more.
    pub fn end(self) {
        let Some(address) = self.address() else { return };
        drop(self.published);
        host_access::leave(self.base);
        self.device.count_freed(self.size as usize);
        // SAFETY: the segment was the pool's alone, and has no users left.
        if let Err(error) = unsafe { hsa::memory::free(address) } {
            log::warn!(
                "{} bytes of a pool at {:#x} could not be given back: {error}",
                self.size,
                self.base
            );
        }
    }

    #[cfg(test)]
    pub fn for_tests(base: u64, size: u64) -> Self {
        Self {
            base,
            size,
            device: crate::device::Context::for_tests().device,
            published: OnceLock::new(),
        }
    }
}

fn users(device: &'static Device, rights: Rights) -> Vec<&'static Agent> {
    let mut agents = vec![device.agent];
    if device.host_accessible {
        agents.push(device.host);
    }
    let all = crate::device::all().unwrap_or_default();
    agents.extend(
        rights
            .users()
            .filter(|&ordinal| ordinal != device.ordinal)
            .filter_map(|ordinal| all.get(ordinal as usize))
            .map(|other| other.agent),
    );
    agents
}
