//! Virtual Memory Management: `cuMemCreate`, `cuMemMap`, `cuMemAddressReserve`, ...

use core::ffi::{c_int, c_void};

use crate::abi::{CUmemAllocationProp, CUmemGenericAllocationHandle, Error, conv};
use crate::{device, driver};

/// What ROCr maps at full speed, and what NVIDIA's driver says for every kind of memory (recorded).
const GRANULARITY: usize = 2 << 20;

driver! {
    /// CUDA Driver API, Virtual Memory Management: `cuMemGetAllocationGranularity`. MPI asks it at start-up, before it knows
    /// whether it will map anything. Minimum and recommended are the same.
    fn cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const CUmemAllocationProp, option: c_int) {
        device::initialized()?;
        if prop.is_null() || !(0..=1).contains(&option) {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(granularity, GRANULARITY)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemRetainAllocationHandle`. MPI asks it of every address to learn
    /// whether the memory is mapped from a handle; as long as handles cannot be made, none is.
    fn cuMemRetainAllocationHandle(_handle: *mut CUmemGenericAllocationHandle, _address: *mut c_void) {
        device::initialized()?;
        Err(Error::INVALID_VALUE)
    }
}
