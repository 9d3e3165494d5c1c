//! Memory Management, host memory: `cuMemHost*`, `cuMemAllocHost`, `cuMemFreeHost`.

use core::ffi::{c_uint, c_void};

use crate::abi::{CUdeviceptr, Error, Result, conv};
use crate::device::{self, context};
use crate::{driver, memory};

/// Allocates pinned memory; 0 bytes are NULL.
fn allocate(to: *mut *mut c_void, size: usize, flags: c_uint) -> Result<()> {
    let context = context::current()?;
    conv::write(to, core::ptr::null_mut())?;
    if size == 0 {
        return Ok(());
    }
    let block = memory::host::allocate(context, size, flags)?;
    conv::write(to, core::ptr::with_exposed_provenance_mut(block.base as usize))
}

/// Pins the client's memory.
///
/// # Safety
/// As [`memory::host::register`].
unsafe fn register(address: *mut c_void, size: usize, flags: c_uint) -> Result<()> {
    let context = context::current()?;
    // SAFETY: the caller's promise.
    unsafe { memory::host::register(context, address.expose_provenance() as u64, size, flags) }
}

driver! {
    /// CUDA Driver API, Memory Management: `cuMemHostAlloc`.
    fn cuMemHostAlloc(address: *mut *mut c_void, size: usize, flags: c_uint) {
        allocate(address, size, flags)
    }

    /// CUDA Driver API, Memory Management: `cuMemAllocHost`.
    fn cuMemAllocHost_v2(address: *mut *mut c_void, size: usize) {
        allocate(address, size, 0)
    }

    /// CUDA Driver API, Memory Management: `cuMemFreeHost`. NULL is fine.
    fn cuMemFreeHost(address: *mut c_void) {
        device::initialized()?;
        if address.is_null() { Ok(()) } else { memory::host::free(address.addr() as u64) }
    }

    /// CUDA Driver API, Memory Management: `cuMemHostGetDevicePointer`. There are no flags yet.
    fn cuMemHostGetDevicePointer_v2(device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint) {
        context::current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let address = host.addr() as u64;
        conv::write(device, memory::host::pinned(address)?.device_address(address))
    }

    /// CUDA Driver API, Memory Management: `cuMemHostGetFlags`.
    fn cuMemHostGetFlags(flags: *mut c_uint, host: *mut c_void) {
        context::current()?;
        conv::write(flags, memory::host::flags(host.addr() as u64)?)
    }

    /// CUDA Driver API, Memory Management: `cuMemHostRegister`.
    fn cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: c_uint) {
        // SAFETY: the entry point's contract.
        unsafe { register(address, size, flags) }
    }

    /// CUDA Driver API, Memory Management: `cuMemHostRegister` of CUDA 4.
    fn cuMemHostRegister(address: *mut c_void, size: usize, flags: c_uint) {
        // SAFETY: the entry point's contract.
        unsafe { register(address, size, flags) }
    }

    /// CUDA Driver API, Memory Management: `cuMemHostUnregister`.
    fn cuMemHostUnregister(address: *mut c_void) {
        context::usable()?;
        memory::host::unregister(address.addr() as u64)
    }
}
