//! Blocks of graphs' allocation nodes: ROCr blocks that are in the registry only while they live.

use core::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::registry::Description;
use super::{Kind, REGISTRY, share};
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::hsa;

/// A block of ROCr's.
pub struct Block {
    base: NonNull<u8>,
    size: u64,
    context: &'static Context,
}

// SAFETY: device memory, which the host never follows the pointer to.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// A block of `size` bytes (not 0) on the context's device.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is not enough.
    pub fn new(context: &'static Context, size: usize) -> Result<Self> {
        let device = context.device;
        let base = device.pool.allocate(size).map_err(|_| Error::MEMORY_ALLOCATION)?;
        let block = Self {
            base,
            size: size as u64,
            context,
        };
        share(device, device.readers.load(Ordering::Acquire), base)?;
        device.count_allocated(size);
        Ok(block)
    }

    /// First byte.
    pub fn address(&self) -> u64 {
        self.base.as_ptr().addr() as u64
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The context it was made in.
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// Makes it memory that CUDA's calls know. Returns the id for [`Block::leave`].
    ///
    /// # Errors
    /// UNKNOWN when the registry refuses it, which no program can cause.
    pub fn enter(&self) -> Result<u64> {
        let description = Description::device(Kind::Graph, self.address(), self.size, self.context);
        REGISTRY
            .insert(description)
            .map(|entry| entry.id)
            .map_err(|conflict| super::unexpected(conflict, &description))
    }

    /// Undoes [`Block::enter`].
    pub fn leave(&self, id: u64) {
        REGISTRY.remove(self.address(), id);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.context.device.count_freed(self.size as usize);
        // SAFETY: allocated by `new`; whoever has launches on their way holds the block.
        if let Err(error) = unsafe { hsa::memory::free(self.base) } {
            log::warn!(
                "memory of a graph at {:#x} could not be given back: {error}",
                self.address()
            );
        }
    }
}
