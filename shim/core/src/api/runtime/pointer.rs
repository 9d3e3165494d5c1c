//! Unified Addressing: `cudaPointerGetAttributes`.

use core::ffi::c_void;

use crate::abi::{Error, conv, cudaMemoryType, cudaPointerAttributes};
use crate::memory::pointer::Summary;
use crate::{device, runtime};

runtime! {
    /// CUDA Runtime API, Unified Addressing: `cudaPointerGetAttributes`. Never fails for an address: memory that CUDA does
    /// not know is of type 0 and device -2 (recorded). Activates no context.
    fn cudaPointerGetAttributes(attributes: *mut cudaPointerAttributes, address: *const c_void)
    quick {
        conv::write(attributes, Summary::quick(address.addr() as u64)?.into()).ok().map(|()| 0)
    }
    {
        device::init()?;
        if attributes.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(attributes, Summary::at(address.addr() as u64).into())
    }
}

impl From<Summary> for cudaPointerAttributes {
    #[inline(always)]
    fn from(summary: Summary) -> Self {
        let pointer = |address: u64| core::ptr::with_exposed_provenance_mut(address as usize);
        Self {
            r#type: cudaMemoryType(summary.memory.cast_signed()),
            device: summary.device,
            devicePointer: pointer(summary.device_pointer),
            hostPointer: pointer(summary.host_pointer),
        }
    }
}
