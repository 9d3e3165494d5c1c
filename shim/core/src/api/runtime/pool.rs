//! Stream Ordered Memory Allocator: `cudaMallocAsync`, `cudaFreeAsync`, `cudaMemPool*`, a device's pools.

use core::ffi::{c_int, c_uint, c_void};

use super::hooked;
use crate::abi::{
    CUmemAccess_flags, CUmemAllocationHandleType, CUmemPool_attribute, Error, Result, conv, cudaMemAccessDesc,
    cudaMemAccessFlags, cudaMemAllocationHandleType, cudaMemLocation, cudaMemPool_t, cudaMemPoolAttr, cudaMemPoolProps,
    cudaMemPoolPtrExportData, cudaStream_t,
};
use crate::api::driver;
use crate::device::{self, context};
use crate::graph::capture;
use crate::stream::DefaultStream;
use crate::{runtime, streamed};

/// Nothing to allocate or to free: but a capture may forbid even that (recorded).
fn nothing_done(stream: cudaStream_t) -> Result<()> {
    if !capture::is_active() {
        return Ok(());
    }
    let stream = super::stream::resolve(stream, DefaultStream::Legacy)?;
    capture::intercept_unsafe(&stream).map(|_| ())
}

/// Allocates through the driver's call, which other libraries hook; 0 bytes are NULL.
fn allocate(
    to: *mut *mut c_void,
    size: usize,
    pool: Option<cudaMemPool_t>,
    stream: cudaStream_t,
    default: DefaultStream,
) -> Result<()> {
    context::runtime_current()?;
    let stream = driver::explicit(stream, default);
    conv::write(to, core::ptr::null_mut())?;
    let mut address = 0;
    match pool {
        Some(pool) if pool.is_null() => return Err(Error::INVALID_VALUE),
        _ if size == 0 => nothing_done(stream)?,
        Some(pool) => hooked::cuMemAllocFromPoolAsync(&raw mut address, size, pool, stream)?,
        None => hooked::cuMemAllocAsync(&raw mut address, size, stream)?,
    }
    conv::write(to, core::ptr::with_exposed_provenance_mut(address as usize))
}

streamed! { runtime
    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMallocAsync`. Size 0 gives NULL.
    fn cudaMallocAsync(address: *mut *mut c_void, size: usize, stream: cudaStream_t),
    fn cudaMallocAsync_ptsz(..) |default| {
        allocate(address, size, None, stream, default)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMallocFromPoolAsync`.
    fn cudaMallocFromPoolAsync(address: *mut *mut c_void, size: usize, pool: cudaMemPool_t, stream: cudaStream_t),
    fn cudaMallocFromPoolAsync_ptsz(..) |default| {
        allocate(address, size, Some(pool), stream, default)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaFreeAsync`. NULL is fine.
    fn cudaFreeAsync(address: *mut c_void, stream: cudaStream_t), fn cudaFreeAsync_ptsz(..) |default| {
        context::runtime_current()?;
        let stream = driver::explicit(stream, default);
        if address.is_null() {
            return nothing_done(stream);
        }
        hooked::cuMemFreeAsync(address.addr() as u64, stream)
    }
}

runtime! {
    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolCreate`.
    fn cudaMemPoolCreate(pool: *mut cudaMemPool_t, properties: *const cudaMemPoolProps) {
        device::init()?;
        // The two structures have the same layout, which `abi::layout` asserts.
        driver::create_pool(pool, properties.cast())
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolDestroy`.
    fn cudaMemPoolDestroy(pool: cudaMemPool_t) {
        device::init()?;
        driver::destroy_pool(pool)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolExportToShareableHandle`: a new descriptor, closed on exec.
    fn cudaMemPoolExportToShareableHandle(
        shareable: *mut c_void, pool: cudaMemPool_t, kind: cudaMemAllocationHandleType, flags: c_uint,
    ) {
        device::init()?;
        driver::export_pool(shareable, pool, CUmemAllocationHandleType(kind.0), flags.into())
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolImportFromShareableHandle`. Nothing can be allocated from it.
    fn cudaMemPoolImportFromShareableHandle(
        pool: *mut cudaMemPool_t, shareable: *mut c_void, kind: cudaMemAllocationHandleType, flags: c_uint,
    ) {
        device::init()?;
        driver::import_pool(pool, shareable, CUmemAllocationHandleType(kind.0), flags.into())
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolExportPointer`, for the first byte of an allocation.
    fn cudaMemPoolExportPointer(data: *mut cudaMemPoolPtrExportData, address: *mut c_void) {
        device::init()?;
        // The two structures have the same layout, which `abi::layout` asserts.
        driver::export_pool_pointer(data.cast(), address.addr() as u64)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolImportPointer`. The memory is freed as any other.
    fn cudaMemPoolImportPointer(address: *mut *mut c_void, pool: cudaMemPool_t, data: *mut cudaMemPoolPtrExportData) {
        context::runtime_current()?;
        if address.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let imported = driver::import_pool_pointer(pool, data.cast())?;
        conv::write(address, core::ptr::with_exposed_provenance_mut(imported as usize))
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolTrimTo`.
    fn cudaMemPoolTrimTo(pool: cudaMemPool_t, keep: usize) {
        device::init()?;
        driver::find(pool)?.trim(keep as u64);
        Ok(())
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolGetAttribute`.
    fn cudaMemPoolGetAttribute(pool: cudaMemPool_t, attribute: cudaMemPoolAttr, value: *mut c_void) {
        device::init()?;
        driver::get_pool_attribute(pool, CUmemPool_attribute(attribute.0), value)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolSetAttribute`.
    fn cudaMemPoolSetAttribute(pool: cudaMemPool_t, attribute: cudaMemPoolAttr, value: *mut c_void) {
        device::init()?;
        driver::set_pool_attribute(pool, CUmemPool_attribute(attribute.0), value)
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolSetAccess`.
    fn cudaMemPoolSetAccess(pool: cudaMemPool_t, descriptions: *const cudaMemAccessDesc, count: usize) {
        device::init()?;
        // SAFETY: the entry point's contract; the two structures have the same layout.
        unsafe { driver::set_pool_access(pool, descriptions.cast(), count) }
    }

    /// CUDA Runtime API, Stream Ordered Memory Allocator: `cudaMemPoolGetAccess`.
    fn cudaMemPoolGetAccess(flags: *mut cudaMemAccessFlags, pool: cudaMemPool_t, location: *mut cudaMemLocation) {
        device::init()?;
        driver::get_pool_access(flags.cast::<CUmemAccess_flags>(), pool, location.cast())
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetDefaultMemPool`.
    fn cudaDeviceGetDefaultMemPool(pool: *mut cudaMemPool_t, device: c_int) {
        device::init()?;
        // SAFETY: the entry point's contract, which is the same.
        conv::result(unsafe { driver::cuDeviceGetDefaultMemPool(pool, device) })
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetMemPool`.
    fn cudaDeviceGetMemPool(pool: *mut cudaMemPool_t, device: c_int) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuDeviceGetMemPool(pool, device) })
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceSetMemPool`.
    fn cudaDeviceSetMemPool(device: c_int, pool: cudaMemPool_t) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuDeviceSetMemPool(device, pool) })
    }
}
