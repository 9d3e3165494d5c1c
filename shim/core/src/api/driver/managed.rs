//! Unified Addressing: advice about managed memory, `cuMemAdvise`, `cuMemPrefetchAsync`, `cuMemRangeGetAttribute`,
//! `cuStreamAttachMemAsync`.

use core::ffi::{c_int, c_uint, c_void};

use super::stream::resolve;
use crate::abi::{
    CUdevice, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUstream, Error,
    Result, conv,
};
use crate::device;
use crate::graph::capture;
use crate::memory::managed;
use crate::stream::Stream;
use crate::{driver, streamed};

/// A location as the device number that older calls take: the host is -1, whatever its node.
pub(in crate::api) fn place(location: CUmemLocation) -> Result<c_int> {
    match location.r#type {
        CUmemLocationType::DEVICE => Ok(location.id),
        CUmemLocationType::HOST | CUmemLocationType::HOST_NUMA | CUmemLocationType::HOST_NUMA_CURRENT => Ok(-1),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// `cuMemPrefetchAsync`.
pub(in crate::api) fn prefetch(stream: &Stream, address: u64, size: usize, place: c_int) -> Result<()> {
    capture::refuse(stream)?;
    managed::prefetch(address, size, place)
}

/// `cuStreamAttachMemAsync`.
pub(in crate::api) fn attach(stream: &Stream, address: u64, flags: c_uint) -> Result<()> {
    capture::refuse(stream)?;
    managed::attach(address, flags)
}

/// `cuMemRangeGetAttribute`.
pub(in crate::api) fn range_attribute(
    data: *mut c_void,
    data_size: usize,
    attribute: CUmem_range_attribute,
    address: u64,
    size: usize,
) -> Result<()> {
    if data.is_null() || data_size == 0 || !data_size.is_multiple_of(size_of::<c_int>()) {
        return Err(Error::INVALID_VALUE);
    }
    let room = data_size / size_of::<c_int>();
    let values = managed::range_attribute(attribute, address, size, room)?;
    for (index, value) in values.into_iter().take(room).enumerate() {
        conv::write(data.cast::<c_int>().wrapping_add(index), value)?;
    }
    Ok(())
}

/// `cuMemRangeGetAttributes`.
///
/// # Safety
/// Three arrays of `count` elements.
pub(in crate::api) unsafe fn range_attributes(
    data: *const *mut c_void,
    sizes: *const usize,
    attributes: *const CUmem_range_attribute,
    count: usize,
    address: u64,
    size: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (data, sizes, attributes) = unsafe {
        (
            conv::slice(data, count)?,
            conv::slice(sizes, count)?,
            conv::slice(attributes, count)?,
        )
    };
    if count == 0 {
        return Err(Error::INVALID_VALUE);
    }
    data.iter()
        .zip(sizes)
        .zip(attributes)
        .try_for_each(|((&data, &room), &attribute)| range_attribute(data, room, attribute, address, size))
}

driver! {
    /// CUDA Driver API, Unified Addressing: `cuMemRangeGetAttribute`. UCX asks where managed memory prefers to be.
    fn cuMemRangeGetAttribute(
        data: *mut c_void, data_size: usize, attribute: CUmem_range_attribute, address: CUdeviceptr, size: usize,
    ) {
        device::initialized()?;
        range_attribute(data, data_size, attribute, address, size)
    }

    /// CUDA Driver API, Unified Addressing: `cuMemRangeGetAttributes`.
    fn cuMemRangeGetAttributes(
        data: *mut *mut c_void, sizes: *mut usize, attributes: *mut CUmem_range_attribute, count: usize, address: CUdeviceptr,
        size: usize,
    ) {
        device::initialized()?;
        // SAFETY: the application promises arrays of `count` elements.
        unsafe { range_attributes(data, sizes, attributes, count, address, size) }
    }

    /// CUDA Driver API, Unified Addressing: `cuMemAdvise`.
    fn cuMemAdvise(address: CUdeviceptr, size: usize, advice: CUmem_advise, device: CUdevice) {
        device::initialized()?;
        managed::advise(address, size, advice, device)
    }

    /// CUDA Driver API, Unified Addressing: `cuMemAdvise_v2`.
    fn cuMemAdvise_v2(address: CUdeviceptr, size: usize, advice: CUmem_advise, location: CUmemLocation) {
        device::initialized()?;
        managed::advise(address, size, advice, place(location).unwrap_or(-1))
    }
}

streamed! { driver
    /// CUDA Driver API, Unified Addressing: `cuMemPrefetchAsync`.
    fn cuMemPrefetchAsync(address: CUdeviceptr, size: usize, device: CUdevice, stream: CUstream),
    fn cuMemPrefetchAsync_ptsz(..) |default| {
        prefetch(&*resolve(stream, default)?, address, size, device)
    }

    /// CUDA Driver API, Unified Addressing: `cuMemPrefetchAsync_v2`.
    fn cuMemPrefetchAsync_v2(
        address: CUdeviceptr, size: usize, location: CUmemLocation, flags: c_uint, stream: CUstream,
    ), fn cuMemPrefetchAsync_v2_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        prefetch(&stream, address, size, place(location)?)
    }

    /// CUDA Driver API, Stream Management: `cuStreamAttachMemAsync`.
    fn cuStreamAttachMemAsync(stream: CUstream, address: CUdeviceptr, _length: usize, flags: c_uint),
    fn cuStreamAttachMemAsync_ptsz(..) |default| {
        attach(&*resolve(stream, default)?, address, flags)
    }
}
