//! Virtual Memory Management: `cuMemCreate`, `cuMemMap`, `cuMemAddressReserve`, ...

use core::ffi::{c_int, c_ulonglong, c_void};
use std::sync::Once;

use crate::abi::{CUmemAllocationHandleType, CUmemAllocationProp, CUmemGenericAllocationHandle, Error, conv};
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

    /// CUDA Driver API, Virtual Memory Management: `cuMemCreate`. These GPUs have no fabric, and asking for its handles is not
    /// permitted, as on an NVIDIA GPU without one: MPI probes it at start-up. Other memory cannot be made yet.
    fn cuMemCreate(
        handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: c_ulonglong,
    ) {
        device::initialized()?;
        let prop = conv::read(prop)?;
        if handle.is_null() || flags != 0 || size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(Error::INVALID_VALUE);
        }
        if prop.requestedHandleTypes.0 & CUmemAllocationHandleType::FABRIC.0 != 0 {
            return Err(Error::NOT_PERMITTED);
        }
        static TOLD: Once = Once::new();
        TOLD.call_once(|| log::warn!("cuMemCreate makes no memory yet; the call fails (reported once)"));
        Err(Error::NOT_SUPPORTED)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemRetainAllocationHandle`. MPI asks it of every address to learn
    /// whether the memory is mapped from a handle; as long as handles cannot be made, none is.
    fn cuMemRetainAllocationHandle(_handle: *mut CUmemGenericAllocationHandle, _address: *mut c_void) {
        device::initialized()?;
        Err(Error::INVALID_VALUE)
    }
}
