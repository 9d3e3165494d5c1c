//! `libcudart.so.13`: the calls whose arguments or structures CUDA 13 changed. All others are [`runtime`](super::runtime)'s.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use super::{driver, runtime};
use crate::abi::cuda13::{cudaDeviceProp, cudaPointerAttributes, cudaResourceDesc, cudaResourceViewDesc};
use crate::abi::{
    CUDA_MEMCPY3D_BATCH_OP, CUmemAllocationType, CUmemcpyAttributes, CUsurfObject, CUtexObject, Error, Plain, Result,
    conv, cudaDriverEntryPointQueryResult, cudaMemAllocationType, cudaMemLocation, cudaMemPool_t, cudaStream_t,
    cudaTextureDesc,
};
use crate::device::{self, attributes, properties};
use crate::memory::pointer::Summary;
use crate::{runtime, streamed};

/// The version of the runtime whose symbols and structures these are.
pub const RUNTIME_VERSION: c_int = 13000;

/// CUDA 12's part of a description, whose flags must be zero.
fn resource(desc: *const cudaResourceDesc) -> Result<*const crate::abi::cudaResourceDesc> {
    if !desc.is_null() && conv::read(desc)?.flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    Ok(desc.cast())
}

/// Writes a structure whose beginning `get` writes as CUDA 12's; the rest is zero.
fn grown<T: Plain, U>(to: *mut T, get: impl FnOnce(*mut U) -> c_int) -> Result<()> {
    if to.is_null() {
        return conv::result(get(core::ptr::null_mut()));
    }
    let mut whole = T::zeroed();
    conv::result(get((&raw mut whole).cast()))?;
    conv::write(to, whole)
}

impl From<Summary> for cudaPointerAttributes {
    #[inline(always)]
    fn from(summary: Summary) -> Self {
        let old = crate::abi::cudaPointerAttributes::from(summary);
        Self {
            r#type: old.r#type,
            device: old.device,
            devicePointer: old.devicePointer,
            hostPointer: old.hostPointer,
            reserved: [0; 8],
        }
    }
}

runtime! {
    /// CUDA Runtime API 13, Version Management: `cudaRuntimeGetVersion`.
    fn cudaRuntimeGetVersion(runtimeVersion: *mut c_int) {
        conv::write(runtimeVersion, RUNTIME_VERSION)
    }

    /// CUDA Runtime API 13, Device Management: `cudaGetDeviceProperties`, whose structure lost and won fields.
    fn cudaGetDeviceProperties(properties: *mut cudaDeviceProp, device: c_int) {
        device::init()?;
        if properties.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let device = device::get(device)?;
        let get = |attribute| attributes::get(device, attribute);
        let mut filled = cudaDeviceProp::from(properties::runtime(device)?);
        filled.deviceNumaConfig = get(130)?;
        filled.deviceNumaId = get(131)?;
        filled.mpsEnabled = get(133)?;
        filled.hostNumaId = get(134)?;
        filled.gpuPciDeviceID = get(139)?.cast_unsigned();
        filled.gpuPciSubsystemID = get(140)?.cast_unsigned();
        filled.hostNumaMultinodeIpcSupported = get(143)?;
        conv::write(properties, filled)
    }

    /// CUDA Runtime API 13, Device Management: `cudaChooseDevice`.
    fn cudaChooseDevice(device: *mut c_int, wanted: *const cudaDeviceProp) {
        let wanted = conv::read(wanted)?;
        let mut old = crate::abi::cudaDeviceProp::zeroed();
        (old.major, old.minor, old.totalGlobalMem) = (wanted.major, wanted.minor, wanted.totalGlobalMem);
        // SAFETY: a structure of ours.
        conv::result(unsafe { runtime::cudaChooseDevice(device, &raw const old) })
    }

    /// CUDA Runtime API 13, Unified Addressing: `cudaPointerGetAttributes`, whose structure has room to grow.
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

    /// CUDA Runtime API 13, Driver Entry Point Access: `cudaGetDriverEntryPoint`, at this runtime's version.
    fn cudaGetDriverEntryPoint(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        runtime::driver_entry_point(symbol, funcPtr, RUNTIME_VERSION as c_uint, flags, driverStatus)
    }

    /// [`cudaGetDriverEntryPoint`] of a client compiled for per-thread default streams.
    fn cudaGetDriverEntryPoint_ptsz(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        runtime::driver_entry_point(symbol, funcPtr, RUNTIME_VERSION as c_uint, runtime::per_thread(flags), driverStatus)
    }

    /// CUDA Runtime API 13, Stream Ordered Memory Allocator: `cudaMemGetDefaultMemPool`.
    fn cudaMemGetDefaultMemPool(
        pool: *mut cudaMemPool_t, location: *mut cudaMemLocation, kind: cudaMemAllocationType,
    ) {
        device::init()?;
        // SAFETY: the entry point's contract; the two structures have the same layout.
        conv::result(unsafe { driver::cuMemGetDefaultMemPool(pool, location.cast(), CUmemAllocationType(kind.0)) })
    }

    /// CUDA Runtime API 13, Stream Ordered Memory Allocator: `cudaMemGetMemPool`.
    fn cudaMemGetMemPool(pool: *mut cudaMemPool_t, location: *mut cudaMemLocation, kind: cudaMemAllocationType) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuMemGetMemPool(pool, location.cast(), CUmemAllocationType(kind.0)) })
    }

    /// CUDA Runtime API 13, Stream Ordered Memory Allocator: `cudaMemSetMemPool`.
    fn cudaMemSetMemPool(location: *mut cudaMemLocation, kind: cudaMemAllocationType, pool: cudaMemPool_t) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuMemSetMemPool(location.cast(), CUmemAllocationType(kind.0), pool) })
    }

    /// CUDA Runtime API 13, Texture Object Management: `cudaCreateTextureObject`, whose structures have room to grow.
    fn cudaCreateTextureObject(
        object: *mut CUtexObject, resource_desc: *const cudaResourceDesc, texture_desc: *const cudaTextureDesc,
        view_desc: *const cudaResourceViewDesc,
    ) {
        let desc = resource(resource_desc)?;
        // SAFETY: the structures begin as CUDA 12's; the entry point's contract.
        conv::result(unsafe { runtime::cudaCreateTextureObject(object, desc, texture_desc, view_desc.cast()) })
    }

    /// CUDA Runtime API 13, Texture Object Management: `cudaGetTextureObjectResourceDesc`.
    fn cudaGetTextureObjectResourceDesc(desc: *mut cudaResourceDesc, object: CUtexObject) {
        // SAFETY: NULL, or a structure of ours that begins as CUDA 12's.
        grown(desc, |desc| unsafe { runtime::cudaGetTextureObjectResourceDesc(desc, object) })
    }

    /// CUDA Runtime API 13, Texture Object Management: `cudaGetTextureObjectResourceViewDesc`.
    fn cudaGetTextureObjectResourceViewDesc(desc: *mut cudaResourceViewDesc, object: CUtexObject) {
        // SAFETY: as above.
        grown(desc, |desc| unsafe { runtime::cudaGetTextureObjectResourceViewDesc(desc, object) })
    }

    /// CUDA Runtime API 13, Surface Object Management: `cudaCreateSurfaceObject`.
    fn cudaCreateSurfaceObject(object: *mut CUsurfObject, resource_desc: *const cudaResourceDesc) {
        let desc = resource(resource_desc)?;
        // SAFETY: as above.
        conv::result(unsafe { runtime::cudaCreateSurfaceObject(object, desc) })
    }

    /// CUDA Runtime API 13, Surface Object Management: `cudaGetSurfaceObjectResourceDesc`.
    fn cudaGetSurfaceObjectResourceDesc(desc: *mut cudaResourceDesc, object: CUsurfObject) {
        // SAFETY: as above.
        grown(desc, |desc| unsafe { runtime::cudaGetSurfaceObjectResourceDesc(desc, object) })
    }
}

streamed! { runtime
    /// CUDA Runtime API 13, Memory Management: `cudaMemcpyBatchAsync`, which does not say which copy failed.
    fn cudaMemcpyBatchAsync(
        dsts: *const *mut c_void, srcs: *const *const c_void, sizes: *const usize, count: usize,
        attributes: *mut CUmemcpyAttributes, firsts: *mut usize, kinds: usize, stream: cudaStream_t,
    ), fn cudaMemcpyBatchAsync_ptsz(..) |default| {
        let (stream, nobody) = (runtime::resolve(stream, default)?, core::ptr::null_mut());
        let (dsts, srcs) = (dsts.cast::<u64>(), srcs.cast::<u64>());
        // SAFETY: the application promises the arrays.
        unsafe { driver::copy_batch(&stream, dsts, srcs, sizes, count, attributes, firsts, kinds, nobody) }
    }

    /// CUDA Runtime API 13, Memory Management: `cudaMemcpy3DBatchAsync`, as well.
    fn cudaMemcpy3DBatchAsync(
        count: usize, operations: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, stream: cudaStream_t,
    ), fn cudaMemcpy3DBatchAsync_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { driver::copy_boxes(&*runtime::resolve(stream, default)?, count, operations, core::ptr::null_mut(), flags) }
    }

    /// CUDA Runtime API 13, Memory Management: `cudaMemPrefetchBatchAsync`.
    fn cudaMemPrefetchBatchAsync(
        addresses: *mut *mut c_void, sizes: *mut usize, count: usize, locations: *mut cudaMemLocation, firsts: *mut usize,
        kinds: usize, flags: c_ulonglong, stream: cudaStream_t,
    ), fn cudaMemPrefetchBatchAsync_ptsz(..) |default| {
        let places = Some((locations.cast_const().cast(), firsts.cast_const(), kinds));
        // SAFETY: as above; the two structures of a location have the same layout.
        unsafe { driver::prefetch_batch(&*runtime::resolve(stream, default)?, addresses.cast(), sizes, count, places, flags) }
    }

    /// CUDA Runtime API 13, Memory Management: `cudaMemDiscardBatchAsync`.
    fn cudaMemDiscardBatchAsync(
        addresses: *mut *mut c_void, sizes: *mut usize, count: usize, flags: c_ulonglong, stream: cudaStream_t,
    ), fn cudaMemDiscardBatchAsync_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { driver::prefetch_batch(&*runtime::resolve(stream, default)?, addresses.cast(), sizes, count, None, flags) }
    }

    /// CUDA Runtime API 13, Memory Management: `cudaMemDiscardAndPrefetchBatchAsync`.
    fn cudaMemDiscardAndPrefetchBatchAsync(
        addresses: *mut *mut c_void, sizes: *mut usize, count: usize, locations: *mut cudaMemLocation, firsts: *mut usize,
        kinds: usize, flags: c_ulonglong, stream: cudaStream_t,
    ), fn cudaMemDiscardAndPrefetchBatchAsync_ptsz(..) |default| {
        let places = Some((locations.cast_const().cast(), firsts.cast_const(), kinds));
        // SAFETY: as above.
        unsafe { driver::prefetch_batch(&*runtime::resolve(stream, default)?, addresses.cast(), sizes, count, places, flags) }
    }
}
