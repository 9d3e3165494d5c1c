//! `libcudart.so.11.0`: the calls whose arguments or structures CUDA 12 changed. All others are [`runtime`](super::runtime)'s.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;

use super::runtime;
use crate::abi::{
    CUtexObject, Error, Plain, Result, conv, cuda11, cudaDeviceProp, cudaFuncAttributes, cudaResourceDesc,
    cudaResourceViewDesc, cudaTextureDesc,
};
use crate::runtime;

/// The version of the runtime whose symbols and structures these are.
const RUNTIME_VERSION: c_int = 11080;

/// A driver's function at this runtime's version; CUDA 11 has no status: what is not found is an error.
fn driver_entry_point(symbol: *const c_char, func: *mut *mut c_void, flags: u64) -> Result<()> {
    runtime::driver_entry_point(symbol, func, RUNTIME_VERSION as c_uint, flags, ptr::null_mut())?;
    if conv::read(func)?.is_null() {
        return Err(Error::SYMBOL_NOT_FOUND);
    }
    Ok(())
}

runtime! {
    /// CUDA Runtime API 11, Version Management: `cudaRuntimeGetVersion`.
    fn cudaRuntimeGetVersion(runtimeVersion: *mut c_int) {
        conv::write(runtimeVersion, RUNTIME_VERSION)
    }

    /// CUDA Runtime API 11, Device Management: `cudaChooseDevice`, whose structure ends earlier.
    fn cudaChooseDevice(device: *mut c_int, wanted: *const c_void) {
        if wanted.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let mut whole = cudaDeviceProp::zeroed();
        // SAFETY: the caller's structure is the beginning of ours, and has this size.
        unsafe { ptr::copy_nonoverlapping(wanted.cast::<u8>(), (&raw mut whole).cast::<u8>(), cuda11::DEVICE_PROP) };
        // SAFETY: a structure of ours.
        conv::result(unsafe { runtime::cudaChooseDevice(device, &raw const whole) })
    }

    /// CUDA Runtime API 11, Execution Control: `cudaFuncGetAttributes`, whose structure ends earlier.
    fn cudaFuncGetAttributes(attributes: *mut c_void, symbol: *const c_void) {
        if attributes.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let mut whole = cudaFuncAttributes::zeroed();
        // SAFETY: a structure of ours.
        conv::result(unsafe { runtime::cudaFuncGetAttributes(&raw mut whole, symbol) })?;
        let whole = (&raw const whole).cast::<u8>();
        // SAFETY: the caller's structure is the beginning of ours, and has room for this much.
        unsafe { ptr::copy_nonoverlapping(whole, attributes.cast::<u8>(), cuda11::FUNC_ATTRIBUTES) };
        Ok(())
    }

    /// CUDA Runtime API 11, Texture Object Management: `cudaCreateTextureObject`, whose texture's structure ends earlier.
    fn cudaCreateTextureObject(
        object: *mut CUtexObject, resource_desc: *const cudaResourceDesc, texture_desc: *const c_void,
        view_desc: *const cudaResourceViewDesc,
    ) {
        let mut whole = cudaTextureDesc::zeroed();
        let mut given: *const cudaTextureDesc = ptr::null();
        if !texture_desc.is_null() {
            let to = (&raw mut whole).cast::<u8>();
            // SAFETY: the caller's structure is the beginning of ours, and has this size.
            unsafe { ptr::copy_nonoverlapping(texture_desc.cast::<u8>(), to, cuda11::TEXTURE_DESC) };
            given = &raw const whole;
        }
        // SAFETY: NULL or a structure of ours; the others are the entry point's contract.
        conv::result(unsafe { runtime::cudaCreateTextureObject(object, resource_desc, given, view_desc) })
    }

    /// CUDA Runtime API 11, Texture Object Management: `cudaGetTextureObjectTextureDesc`, whose structure ends earlier.
    fn cudaGetTextureObjectTextureDesc(desc: *mut c_void, object: CUtexObject) {
        if desc.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let mut whole = cudaTextureDesc::zeroed();
        // SAFETY: a structure of ours.
        conv::result(unsafe { runtime::cudaGetTextureObjectTextureDesc(&raw mut whole, object) })?;
        let whole = (&raw const whole).cast::<u8>();
        // SAFETY: the caller's structure is the beginning of ours, and has room for this much.
        unsafe { ptr::copy_nonoverlapping(whole, desc.cast::<u8>(), cuda11::TEXTURE_DESC) };
        Ok(())
    }

    /// CUDA Runtime API 11, Driver Entry Point Access: `cudaGetDriverEntryPoint`.
    fn cudaGetDriverEntryPoint(symbol: *const c_char, funcPtr: *mut *mut c_void, flags: u64) {
        driver_entry_point(symbol, funcPtr, flags)
    }

    /// [`cudaGetDriverEntryPoint`] of a client compiled for per-thread default streams.
    fn cudaGetDriverEntryPoint_ptsz(symbol: *const c_char, funcPtr: *mut *mut c_void, flags: u64) {
        driver_entry_point(symbol, funcPtr, runtime::per_thread(flags))
    }
}
