//! Unified Addressing: `cudaPointerGetAttributes`.

use core::ffi::c_void;

use crate::abi::{Error, conv, cudaMemoryType, cudaPointerAttributes};
use crate::memory::pointer;
use crate::{device, runtime};

runtime! {
    /// CUDA Runtime API, Unified Addressing: `cudaPointerGetAttributes`. Never fails for an address: memory that CUDA does
    /// not know is of type 0 and device -2 (recorded). Activates no context.
    fn cudaPointerGetAttributes(attributes: *mut cudaPointerAttributes, address: *const c_void) {
        device::init()?;
        if attributes.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let (kind, device, device_pointer, host_pointer) = pointer::runtime(address.addr() as u64);
        let pointer = |address: u64| core::ptr::with_exposed_provenance_mut(address as usize);
        conv::write(attributes, cudaPointerAttributes {
            r#type: cudaMemoryType(kind),
            device,
            devicePointer: pointer(device_pointer),
            hostPointer: pointer(host_pointer),
        })
    }
}
