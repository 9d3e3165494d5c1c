//! Calls of CUDA before 3.2, where device pointers and sizes had 32 bits: the names without a version, whose successors end in `_v2`.
//! They work on contexts of that time only. As recorded, none can be made, and that is what they say, but for handles that are NULL and
//! for calls with nothing to do.

use core::ffi::{c_char, c_uint, c_void};

use crate::abi::{CUarray, CUmodule, Error, Result};
use crate::device::{self, context};
use crate::driver;

fn no_context_of_theirs() -> Result<()> {
    device::initialized()?;
    Err(Error::DEVICE_UNINITIALIZED)
}

/// As [`no_context_of_theirs`], of a call that looks at a handle first.
fn no_context_for(handle: *const c_void) -> Result<()> {
    if handle.is_null() {
        return Err(Error::INVALID_RESOURCE_HANDLE);
    }
    no_context_of_theirs()
}

driver! {
    /// `cuCtxCreate` of a context with 32-bit pointers: as recorded, there is no room for one.
    fn cuCtxCreate() {
        device::initialized()?;
        Err(Error::MEMORY_ALLOCATION)
    }

    /// `cuArray3DCreate` with 32-bit pointers.
    fn cuArray3DCreate() {
        no_context_of_theirs()
    }

    /// `cuArray3DGetDescriptor` with 32-bit pointers.
    fn cuArray3DGetDescriptor(_descriptor: *mut c_void, array: CUarray) {
        no_context_for(array.cast_const().cast())
    }

    /// `cuArrayCreate` with 32-bit pointers.
    fn cuArrayCreate() {
        no_context_of_theirs()
    }

    /// `cuArrayGetDescriptor` with 32-bit pointers.
    fn cuArrayGetDescriptor(_descriptor: *mut c_void, array: CUarray) {
        no_context_for(array.cast_const().cast())
    }

    /// `cuMemAlloc` with 32-bit pointers.
    fn cuMemAlloc() {
        no_context_of_theirs()
    }

    /// `cuMemAllocHost` with 32-bit pointers.
    fn cuMemAllocHost() {
        no_context_of_theirs()
    }

    /// `cuMemAllocPitch` with 32-bit pointers.
    fn cuMemAllocPitch() {
        no_context_of_theirs()
    }

    /// `cuMemFree` with 32-bit pointers.
    fn cuMemFree(address: c_uint) {
        device::initialized()?;
        // Recorded: freeing nothing needs a context only where there is one.
        if address == 0 && context::current().is_err() {
            return Ok(());
        }
        no_context_of_theirs()
    }

    /// `cuMemGetAddressRange` with 32-bit pointers.
    fn cuMemGetAddressRange(base: *mut c_uint, size: *mut c_uint, _address: c_uint) {
        if base.is_null() && size.is_null() {
            return Ok(());
        }
        no_context_of_theirs()
    }

    /// `cuMemGetInfo` with 32-bit pointers.
    fn cuMemGetInfo() {
        no_context_of_theirs()
    }

    /// `cuMemHostGetDevicePointer` with 32-bit pointers.
    fn cuMemHostGetDevicePointer() {
        no_context_of_theirs()
    }

    /// `cuMemcpy2D` with 32-bit pointers.
    fn cuMemcpy2D() {
        no_context_of_theirs()
    }

    /// `cuMemcpy2DAsync` with 32-bit pointers.
    fn cuMemcpy2DAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpy2DUnaligned` with 32-bit pointers.
    fn cuMemcpy2DUnaligned() {
        no_context_of_theirs()
    }

    /// `cuMemcpy3D` with 32-bit pointers.
    fn cuMemcpy3D() {
        no_context_of_theirs()
    }

    /// `cuMemcpy3DAsync` with 32-bit pointers.
    fn cuMemcpy3DAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpyAtoA` with 32-bit pointers.
    fn cuMemcpyAtoA() {
        no_context_of_theirs()
    }

    /// `cuMemcpyAtoD` with 32-bit pointers.
    fn cuMemcpyAtoD() {
        no_context_of_theirs()
    }

    /// `cuMemcpyAtoH` with 32-bit pointers.
    fn cuMemcpyAtoH() {
        no_context_of_theirs()
    }

    /// `cuMemcpyAtoHAsync` with 32-bit pointers.
    fn cuMemcpyAtoHAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpyDtoA` with 32-bit pointers.
    fn cuMemcpyDtoA() {
        no_context_of_theirs()
    }

    /// `cuMemcpyDtoD` with 32-bit pointers.
    fn cuMemcpyDtoD() {
        no_context_of_theirs()
    }

    /// `cuMemcpyDtoDAsync` with 32-bit pointers.
    fn cuMemcpyDtoDAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpyDtoH` with 32-bit pointers.
    fn cuMemcpyDtoH() {
        no_context_of_theirs()
    }

    /// `cuMemcpyDtoHAsync` with 32-bit pointers.
    fn cuMemcpyDtoHAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpyHtoA` with 32-bit pointers.
    fn cuMemcpyHtoA() {
        no_context_of_theirs()
    }

    /// `cuMemcpyHtoAAsync` with 32-bit pointers.
    fn cuMemcpyHtoAAsync() {
        no_context_of_theirs()
    }

    /// `cuMemcpyHtoD` with 32-bit pointers.
    fn cuMemcpyHtoD() {
        no_context_of_theirs()
    }

    /// `cuMemcpyHtoDAsync` with 32-bit pointers.
    fn cuMemcpyHtoDAsync() {
        no_context_of_theirs()
    }

    /// `cuMemsetD16` with 32-bit pointers.
    fn cuMemsetD16() {
        no_context_of_theirs()
    }

    /// `cuMemsetD2D16` with 32-bit pointers.
    fn cuMemsetD2D16() {
        no_context_of_theirs()
    }

    /// `cuMemsetD2D32` with 32-bit pointers.
    fn cuMemsetD2D32() {
        no_context_of_theirs()
    }

    /// `cuMemsetD2D8` with 32-bit pointers.
    fn cuMemsetD2D8() {
        no_context_of_theirs()
    }

    /// `cuMemsetD32` with 32-bit pointers.
    fn cuMemsetD32() {
        no_context_of_theirs()
    }

    /// `cuMemsetD8` with 32-bit pointers.
    fn cuMemsetD8() {
        no_context_of_theirs()
    }

    /// `cuModuleGetGlobal` with 32-bit pointers.
    fn cuModuleGetGlobal(_address: *mut c_uint, _size: *mut c_uint, module: CUmodule, _name: *const c_char) {
        device::initialized()?;
        no_context_for(module.cast_const().cast())
    }
}
