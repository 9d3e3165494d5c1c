//! Virtual Memory Management: `cuMemCreate`, `cuMemMap`, `cuMemAddressReserve`, ...

use core::ffi::c_void;

use crate::abi::{CUmemGenericAllocationHandle, Error};
use crate::{device, driver};

driver! {
    /// CUDA Driver API, Virtual Memory Management: `cuMemRetainAllocationHandle`. MPI asks it of every address to learn
    /// whether the memory is mapped from a handle; as long as handles cannot be made, none is.
    fn cuMemRetainAllocationHandle(_handle: *mut CUmemGenericAllocationHandle, _address: *mut c_void) {
        device::initialized()?;
        Err(Error::INVALID_VALUE)
    }
}
