//! Blocks of ROCr that are not in the registry: what lies in them has no address that an application may use, or none yet.

use core::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::share;
use crate::abi::Result;
use crate::device::Context;
use crate::hsa;

/// A block of ROCr's, given back when it is dropped.
pub struct Unlisted {
    base: NonNull<u8>,
    size: u64,
    context: &'static Context,
}

// SAFETY: device memory, which the host never follows the pointer to.
unsafe impl Send for Unlisted {}
// SAFETY: as above.
unsafe impl Sync for Unlisted {}

impl Unlisted {
    /// A block of `size` bytes (not 0) on the context's device, which peers that have access to its memory share.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is not enough.
    pub fn new(context: &'static Context, size: usize) -> Result<Self> {
        let device = context.device;
        let base = device.pool.allocate(size).or_else(|_| {
            super::pool::trim_unused(device);
            device.pool.allocate(size)
        });
        let block = Self {
            base: base.map_err(|error| super::out_of_memory(size, device, error))?,
            size: size as u64,
            context,
        };
        device.count_allocated(size);
        share(device, device.readers.load(Ordering::Acquire), block.base)?;
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
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        self.context.device.count_freed(self.size as usize);
        // SAFETY: allocated by `new`; whoever has work on its way holds the block or has waited for it.
        if let Err(error) = unsafe { hsa::memory::free(self.base) } {
            log::warn!("the block at {:#x} could not be given back: {error}", self.address());
        }
    }
}
