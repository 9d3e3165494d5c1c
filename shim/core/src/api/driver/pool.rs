//! Stream Ordered Memory Allocator: `cuMemAllocAsync`, `cuMemFreeAsync`, `cuMemPool*`, a device's pools.

use core::ffi::{c_int, c_ulonglong, c_void};
use std::os::fd::IntoRawFd as _;
use std::sync::Arc;

use super::stream::with;
use crate::abi::{
    CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType,
    CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemPoolPtrExportData, CUmemoryPool,
    CUstream, Error, Result, conv,
};
use crate::device::{self, Device, context};
use crate::graph::memory::Allocation;
use crate::graph::{Operation, capture};
use crate::memory::pool::{self, Pool, PoolValue, Properties, share};
use crate::memory::{rights, vmm};
use crate::stream::{self, DefaultStream};
use crate::{driver, memory, streamed};

/// Handle types that a pool may be made for.
const HANDLE_TYPES: i32 = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR.0 | CUmemAllocationHandleType::FABRIC.0;

/// The pool behind a handle.
pub(in crate::api) fn find(pool: CUmemoryPool) -> Result<Arc<Pool>> {
    device::initialized()?;
    pool::find(pool.addr() as u64)
}

fn handle(pool: &Pool) -> CUmemoryPool {
    core::ptr::without_provenance_mut(pool.handle() as usize)
}

/// The device that a location names; memory of pools lies nowhere else.
fn device_at(location: CUmemLocation) -> Result<&'static Device> {
    match location.r#type {
        CUmemLocationType::DEVICE => device::get(location.id),
        CUmemLocationType::HOST | CUmemLocationType::HOST_NUMA | CUmemLocationType::HOST_NUMA_CURRENT => {
            Err(Error::NOT_SUPPORTED)
        }
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Makes a pool.
pub(in crate::api) fn create_pool(to: *mut CUmemoryPool, properties: *const CUmemPoolProps) -> Result<()> {
    device::initialized()?;
    let properties = conv::read(properties)?;
    if to.is_null()
        || properties.allocType != CUmemAllocationType::PINNED
        || properties.handleTypes.0 & !HANDLE_TYPES != 0
        || properties.reserved.iter().any(|&byte| byte != 0)
    {
        return Err(Error::INVALID_VALUE);
    }
    // As attribute 119 says.
    if properties.handleTypes.0 & CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR.0 != 0 {
        vmm::check_supported()?;
    }
    let device = device_at(properties.location).map_err(|error| match error {
        Error::INVALID_DEVICE => Error::INVALID_VALUE,
        other => other,
    })?;
    let pool = pool::create(Properties {
        device,
        max_size: properties.maxSize as u64,
        handle_types: properties.handleTypes.0.cast_unsigned(),
    });
    conv::write(to, handle(&pool))
}

/// Writes an attribute's value in its width.
pub(in crate::api) fn get_pool_attribute(
    pool: CUmemoryPool,
    attribute: CUmemPool_attribute,
    value: *mut c_void,
) -> Result<()> {
    match find(pool)?.attribute(attribute)? {
        PoolValue::Word(word) => conv::write(value.cast(), word),
        PoolValue::Long(long) => conv::write(value.cast(), long),
    }
}

/// Reads a value in the attribute's width and sets it.
pub(in crate::api) fn set_pool_attribute(
    pool: CUmemoryPool,
    attribute: CUmemPool_attribute,
    value: *const c_void,
) -> Result<()> {
    let pool = find(pool)?;
    match pool.attribute(attribute)? {
        PoolValue::Word(_) => pool.set_policy(attribute, conv::read(value.cast())?),
        PoolValue::Long(_) => pool.set_figure(attribute, conv::read(value.cast())?),
    }
}

/// Sets what devices may do with a pool's memory.
///
/// # Safety
/// `descriptions` points to `count` structures.
pub(in crate::api) unsafe fn set_pool_access(
    pool: CUmemoryPool,
    descriptions: *const CUmemAccessDesc,
    count: usize,
) -> Result<()> {
    device::initialized()?;
    // SAFETY: the caller's promise.
    let descriptions = unsafe { conv::slice(descriptions, count)? };
    let checked: Result<Vec<_>> = descriptions
        .iter()
        .map(|description| {
            let device = device_at(description.location)?;
            Ok((device, rights::checked(description.flags, device.ordinal)?))
        })
        .collect();
    checked?.into_iter().try_for_each(|(device, flags)| {
        let imported = share::set_access(pool.addr() as u64, device, flags);
        imported.unwrap_or_else(|| find(pool)?.set_access(device, flags))
    })
}

/// What a device may do with a pool's memory.
pub(in crate::api) fn get_pool_access(
    flags: *mut CUmemAccess_flags,
    pool: CUmemoryPool,
    location: *const CUmemLocation,
) -> Result<()> {
    device::initialized()?;
    let device = device_at(conv::read(location)?)?;
    let rights = match share::access(pool.addr() as u64, device) {
        Some(rights) => rights,
        None => find(pool)?.rights().of(device.ordinal),
    };
    conv::write(flags, CUmemAccess_flags(rights.cast_signed()))
}

/// Ends a pool's handle, an imported one's too.
pub(in crate::api) fn destroy_pool(pool: CUmemoryPool) -> Result<()> {
    device::initialized()?;
    let handle = pool.addr() as u64;
    share::destroy(handle).unwrap_or_else(|| pool::destroy(handle))
}

/// Pools travel by descriptor, which ROCr's VMM stands for (attribute 119). There is no fabric.
fn check_shareable(kind: CUmemAllocationHandleType, flags: u64) -> Result<()> {
    if flags != 0 || kind != CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR {
        return Err(Error::INVALID_VALUE);
    }
    vmm::check_supported()
}

/// Writes a new descriptor of a pool.
pub(in crate::api) fn export_pool(
    to: *mut c_void,
    pool: CUmemoryPool,
    kind: CUmemAllocationHandleType,
    flags: u64,
) -> Result<()> {
    let pool = find(pool)?;
    check_shareable(kind, flags)?;
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(to.cast::<c_int>(), share::export(&pool)?.into_raw_fd())
}

/// Takes in another process's pool. The descriptor is the pointer's value, and stays the caller's.
pub(in crate::api) fn import_pool(
    to: *mut CUmemoryPool,
    shareable: *mut c_void,
    kind: CUmemAllocationHandleType,
    flags: u64,
) -> Result<()> {
    device::initialized()?;
    check_shareable(kind, flags)?;
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let handle = share::import(c_int::try_from(shareable.addr()).unwrap_or(-1))?;
    conv::write(to, core::ptr::without_provenance_mut(handle as usize))
}

/// Writes what another process needs to import an allocation.
pub(in crate::api) fn export_pool_pointer(to: *mut CUmemPoolPtrExportData, address: u64) -> Result<()> {
    device::initialized()?;
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(
        to,
        CUmemPoolPtrExportData {
            reserved: share::export_pointer(address)?,
        },
    )
}

/// Maps an allocation of an imported pool.
pub(in crate::api) fn import_pool_pointer(pool: CUmemoryPool, data: *const CUmemPoolPtrExportData) -> Result<u64> {
    device::initialized()?;
    share::import_pointer(pool.addr() as u64, &conv::read(data)?.reserved)
}

/// Allocates from a pool, or from the current one of the stream's device.
fn allocate(
    to: *mut CUdeviceptr,
    size: usize,
    pool: Option<CUmemoryPool>,
    stream: CUstream,
    default: DefaultStream,
) -> Result<()> {
    with(stream, default, |stream| {
        let captured = capture::intercept_unsafe(stream)?;
        let pool = pool.map(find).transpose()?;
        if to.is_null() || size == 0 {
            return Err(Error::INVALID_VALUE);
        }
        if let Some(sequence) = captured {
            // A graph's memory is the graph's own; of the pool only the device counts.
            let device = pool.map_or(stream.device(), |pool| pool.properties().device);
            let owner = context::of_streams(stream.owner()).filter(|owner| owner.device.ordinal == device.ordinal);
            let block = Allocation::new(owner.map_or_else(|| context::runtime_primary(device), Ok)?, size)?;
            let address = block.address();
            sequence.add(stream, Operation::Alloc(block))?;
            return conv::write(to, address);
        }
        let address = match pool {
            Some(pool) => pool::allocate(&pool, stream, size as u64)?,
            None => pool::allocate_from_current(stream, size as u64)?,
        };
        conv::write(to, address)
    })
}

streamed! { driver
    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemAllocAsync`.
    fn cuMemAllocAsync(address: *mut CUdeviceptr, size: usize, stream: CUstream), fn cuMemAllocAsync_ptsz(..) |default| {
        allocate(address, size, None, stream, default)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemAllocFromPoolAsync`.
    fn cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, size: usize, pool: CUmemoryPool, stream: CUstream),
    fn cuMemAllocFromPoolAsync_ptsz(..) |default| {
        allocate(address, size, Some(pool), stream, default)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemFreeAsync`. Frees memory of `cuMemAlloc`, too (recorded). 0 is fine.
    fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream), fn cuMemFreeAsync_ptsz(..) |default| {
        with(stream, default, |stream| match address {
            0 => capture::intercept_unsafe(stream).map(|_| ()),
            address => memory::free_in_order(address, stream),
        })
    }
}

driver! {
    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolCreate`.
    fn cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps) {
        create_pool(pool, properties)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolDestroy`.
    fn cuMemPoolDestroy(pool: CUmemoryPool) {
        destroy_pool(pool)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolExportToShareableHandle`: a new descriptor, closed on exec.
    fn cuMemPoolExportToShareableHandle(
        shareable: *mut c_void, pool: CUmemoryPool, kind: CUmemAllocationHandleType, flags: c_ulonglong,
    ) {
        export_pool(shareable, pool, kind, flags)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolImportFromShareableHandle`. Nothing can be allocated from it.
    fn cuMemPoolImportFromShareableHandle(
        pool: *mut CUmemoryPool, shareable: *mut c_void, kind: CUmemAllocationHandleType, flags: c_ulonglong,
    ) {
        import_pool(pool, shareable, kind, flags)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolExportPointer`, for the first byte of an allocation.
    fn cuMemPoolExportPointer(data: *mut CUmemPoolPtrExportData, address: CUdeviceptr) {
        export_pool_pointer(data, address)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolImportPointer`. The memory is freed as any other.
    fn cuMemPoolImportPointer(address: *mut CUdeviceptr, pool: CUmemoryPool, data: *mut CUmemPoolPtrExportData) {
        if address.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(address, import_pool_pointer(pool, data)?)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolTrimTo`.
    fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize) {
        find(pool)?.trim(keep as u64);
        Ok(())
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolGetAttribute`.
    fn cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        get_pool_attribute(pool, attribute, value)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolSetAttribute`.
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        set_pool_attribute(pool, attribute, value)
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolSetAccess`.
    fn cuMemPoolSetAccess(pool: CUmemoryPool, descriptions: *const CUmemAccessDesc, count: usize) {
        // SAFETY: the entry point's contract.
        unsafe { set_pool_access(pool, descriptions, count) }
    }

    /// CUDA Driver API, Stream Ordered Memory Allocator: `cuMemPoolGetAccess`.
    fn cuMemPoolGetAccess(flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation) {
        get_pool_access(flags, pool, location)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetDefaultMemPool`.
    fn cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice) {
        conv::write(pool, handle(&*pool::default_of(device::get(device)?)?))
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetMemPool`.
    fn cuDeviceGetMemPool(pool: *mut CUmemoryPool, device: CUdevice) {
        conv::write(pool, handle(&*pool::current(device::get(device)?)?))
    }

    /// CUDA Driver API, Device Management: `cuDeviceSetMemPool`.
    fn cuDeviceSetMemPool(device: CUdevice, pool: CUmemoryPool) {
        pool::set_current(device::get(device)?, &*find(pool)?)
    }

    /// CUDA 13 Driver API, Stream Ordered Memory Allocator: `cuMemGetDefaultMemPool`.
    fn cuMemGetDefaultMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        conv::write(pool, handle(&*pool::default_of(placed(location, kind)?)?))
    }

    /// CUDA 13 Driver API, Stream Ordered Memory Allocator: `cuMemGetMemPool`.
    fn cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        conv::write(pool, handle(&*pool::current(placed(location, kind)?)?))
    }

    /// CUDA 13 Driver API, Stream Ordered Memory Allocator: `cuMemSetMemPool`.
    fn cuMemSetMemPool(location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool) {
        pool::set_current(placed(location, kind)?, &*find(pool)?)
    }
}

/// The device of a location for pinned memory, the one kind there is.
fn placed(location: *const CUmemLocation, kind: CUmemAllocationType) -> Result<&'static Device> {
    device::initialized()?;
    let location = conv::read(location)?;
    match kind {
        CUmemAllocationType::PINNED => device_at(location),
        // CUDA 13's managed pools.
        CUmemAllocationType(2) => Err(Error::NOT_SUPPORTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A stream's handle, with 0 replaced by what it means to the caller: for calls that pass it on.
pub(in crate::api) fn explicit(stream: CUstream, default: DefaultStream) -> CUstream {
    match (stream.is_null(), default) {
        (true, DefaultStream::PerThread) => core::ptr::without_provenance_mut(stream::PER_THREAD as usize),
        _ => stream,
    }
}
