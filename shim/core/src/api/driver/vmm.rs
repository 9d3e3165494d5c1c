//! Virtual Memory Management: `cuMemCreate`, `cuMemMap`, `cuMemAddressReserve`, ...

use core::ffi::{c_int, c_ulonglong, c_void};
use std::os::fd::IntoRawFd;

use crate::abi::{
    CUdeviceptr, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, Error, Result, conv,
};
use crate::device::{self, Device, context};
use crate::driver;
use crate::memory::vmm::{self, GRANULARITY};
use crate::memory::{self, Kind, rights};

/// `CU_MEM_ALLOCATION_COMP_GENERIC`: accepted, and memory that compresses nothing is made (recorded where it can be had).
const COMPRESSION_TYPES: u8 = 1;

/// What `cuMemCreate` does not accept, in the order in which it looks.
fn check_properties(properties: &CUmemAllocationProp) -> Result<&'static Device> {
    const FABRIC: i32 = CUmemAllocationHandleType::FABRIC.0;
    const POSIX_FD: i32 = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR.0;
    const UNNAMED: i32 = 16; // no name, and accepted (recorded)
    let flags = properties.allocFlags;
    if properties.r#type != CUmemAllocationType::PINNED
        || !properties.win32HandleMetaData.is_null()
        || flags.compressionType > COMPRESSION_TYPES
        || flags.reserved != [0; 4]
        || properties.requestedHandleTypes.0 & !(POSIX_FD | FABRIC | UNNAMED) != 0
    {
        return Err(Error::INVALID_VALUE);
    }
    // These GPUs have no fabric, and asking for its handles is not permitted, as on an NVIDIA GPU without one: MPI
    // probes it at start-up.
    if properties.requestedHandleTypes.0 & FABRIC != 0 {
        return Err(Error::NOT_PERMITTED);
    }
    match properties.location.r#type {
        CUmemLocationType::DEVICE => device::get(properties.location.id),
        // ROCr makes such memory on GPUs only.
        CUmemLocationType::HOST | CUmemLocationType::HOST_NUMA => Err(Error::NOT_SUPPORTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A device and what it may do.
fn checked_access(description: &CUmemAccessDesc) -> Result<(&'static Device, u32)> {
    match description.location.r#type {
        CUmemLocationType::DEVICE => {}
        CUmemLocationType::HOST | CUmemLocationType::HOST_NUMA | CUmemLocationType::HOST_NUMA_CURRENT => {
            return Err(Error::NOT_SUPPORTED);
        }
        _ => return Err(Error::INVALID_VALUE),
    }
    let device = device::get(description.location.id).map_err(|_| Error::INVALID_VALUE)?;
    Ok((device, rights::checked(description.flags, device.ordinal)?))
}

driver! {
    /// CUDA Driver API, Virtual Memory Management: `cuMemGetAllocationGranularity`. MPI asks it at start-up, before it knows
    /// whether it will map anything. Minimum and recommended are the same.
    fn cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const CUmemAllocationProp, option: c_int) {
        device::initialized()?;
        if prop.is_null() || !(0..=1).contains(&option) {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(granularity, GRANULARITY as usize)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemAddressReserve`. There are no flags.
    fn cuMemAddressReserve(
        address: *mut CUdeviceptr, size: usize, alignment: usize, hint: CUdeviceptr, flags: c_ulonglong,
    ) {
        device::initialized()?;
        if address.is_null() || flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(address, vmm::reserve(size as u64, alignment as u64, hint)?)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemAddressFree`.
    fn cuMemAddressFree(address: CUdeviceptr, size: usize) {
        device::initialized()?;
        vmm::unreserve(address, size as u64)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemCreate`.
    fn cuMemCreate(
        handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: c_ulonglong,
    ) {
        device::initialized()?;
        let properties = conv::read(prop)?;
        if handle.is_null() || flags != 0 || size == 0 || !(size as u64).is_multiple_of(GRANULARITY) {
            return Err(Error::INVALID_VALUE);
        }
        let device = check_properties(&properties)?;
        conv::write(handle, vmm::create(device, size as u64, properties)?)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemRelease`.
    fn cuMemRelease(handle: CUmemGenericAllocationHandle) {
        device::initialized()?;
        vmm::release(handle)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemRetainAllocationHandle`. MPI asks it of every address to learn
    /// whether the memory is mapped from a handle.
    fn cuMemRetainAllocationHandle(handle: *mut CUmemGenericAllocationHandle, address: *mut c_void) {
        device::initialized()?;
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let address = address.addr() as u64;
        // Most addresses are no mapping's, and the registry knows that without a lock.
        if !memory::lookup(address).is_some_and(|entry| entry.kind.is_mapping()) {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(handle, vmm::retain(address)?)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemGetAllocationPropertiesFromHandle`.
    fn cuMemGetAllocationPropertiesFromHandle(prop: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle) {
        device::initialized()?;
        if prop.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(prop, vmm::properties(handle)?)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemMap`. Maps a memory as a whole; there are no flags.
    fn cuMemMap(
        address: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: c_ulonglong,
    ) {
        device::initialized()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        vmm::map(address, size as u64, offset as u64, handle)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemUnmap`.
    fn cuMemUnmap(address: CUdeviceptr, size: usize) {
        device::initialized()?;
        vmm::unmap(address, size as u64)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemSetAccess`.
    fn cuMemSetAccess(address: CUdeviceptr, size: usize, descriptions: *const CUmemAccessDesc, count: usize) {
        device::initialized()?;
        // SAFETY: the entry point's contract.
        let descriptions = unsafe { conv::slice(descriptions, count)? };
        let wanted: Result<Vec<_>> = descriptions.iter().map(checked_access).collect();
        vmm::set_access(address, size as u64, &wanted?)
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemGetAccess`. As recorded, memory of `cuMemAlloc` has none, and a
    /// failure leaves 0.
    fn cuMemGetAccess(flags: *mut c_ulonglong, location: *const CUmemLocation, address: CUdeviceptr) {
        device::initialized()?;
        let location = conv::read(location)?;
        conv::write(flags, 0)?;
        if location.r#type != CUmemLocationType::DEVICE {
            return Err(Error::INVALID_VALUE);
        }
        let device = device::get(location.id)?;
        let access = match memory::lookup(address) {
            Some(entry) if entry.kind.is_mapping() => vmm::access(address, device)?,
            Some(entry) if entry.kind == Kind::Device => 0,
            _ => return Err(Error::INVALID_VALUE),
        };
        conv::write(flags, access.into())
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemExportToShareableHandle`: a new descriptor, closed on exec.
    fn cuMemExportToShareableHandle(
        shareable: *mut c_void, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: c_ulonglong,
    ) {
        device::initialized()?;
        if shareable.is_null() || flags != 0 || kind != CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR {
            return Err(Error::INVALID_VALUE);
        }
        let fd = vmm::export(handle)?;
        conv::write(shareable.cast::<c_int>(), fd.into_raw_fd())
    }

    /// CUDA Driver API, Virtual Memory Management: `cuMemImportFromShareableHandle`. The descriptor stays the caller's.
    fn cuMemImportFromShareableHandle(
        handle: *mut CUmemGenericAllocationHandle, shareable: *mut c_void, kind: CUmemAllocationHandleType,
    ) {
        device::initialized()?;
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        match kind {
            CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR => {}
            // There is no fabric to reach its owner by.
            CUmemAllocationHandleType::FABRIC => return Err(Error::NOT_SUPPORTED),
            _ => return Err(Error::INVALID_VALUE),
        }
        let device = device::get(context::runtime_device())?;
        // The descriptor is the pointer's value.
        let fd = c_int::try_from(shareable.addr()).unwrap_or(-1);
        conv::write(handle, vmm::import(device, fd)?)
    }
}
