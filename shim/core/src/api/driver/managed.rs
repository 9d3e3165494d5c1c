//! Unified Addressing: advice about managed memory, `cuMemAdvise`, `cuMemPrefetchAsync`, `cuMemPrefetchBatchAsync`,
//! `cuMemDiscardBatchAsync`, `cuMemRangeGetAttribute`, `cuStreamAttachMemAsync`.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::stream::resolve;
use crate::abi::{
    CUdevice, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUstream, Error,
    Result, conv,
};
use crate::device::context;
use crate::graph::capture;
use crate::memory::managed;
use crate::stream::{Kind, Stream};
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

/// Where the ranges of a batch go: the array of places, the index of the first range that each is for, and how many there are.
pub(in crate::api) type Places = (*const CUmemLocation, *const usize, usize);

/// `cuMemPrefetchBatchAsync`, `cuMemDiscardBatchAsync` and `cuMemDiscardAndPrefetchBatchAsync`. A discarded range may keep what is in it,
/// so only the ranges are checked; all of them before one is prefetched.
///
/// # Errors
/// INVALID_VALUE for an empty batch, flags, the legacy default stream, places that do not begin with the first range, and ranges that are not
/// managed memory, or places that are not there.
///
/// # Safety
/// Arrays of `count` elements, and of as many places as said.
pub(in crate::api) unsafe fn prefetch_batch(
    stream: &Stream,
    addresses: *const u64,
    sizes: *const usize,
    count: usize,
    places: Option<Places>,
    flags: c_ulonglong,
) -> Result<()> {
    if count == 0 || flags != 0 || stream.kind() == Kind::Legacy {
        return Err(Error::INVALID_VALUE);
    }
    capture::refuse(stream)?;
    // SAFETY: the caller's promise.
    let (addresses, sizes) = unsafe { (conv::slice(addresses, count)?, conv::slice(sizes, count)?) };
    let ranges = || addresses.iter().copied().zip(sizes.iter().copied());
    ranges().try_for_each(|(address, size)| managed::check_range(address, size))?;
    let Some((locations, firsts, kinds)) = places else {
        return Ok(());
    };
    // SAFETY: as above.
    let (locations, firsts) = unsafe { (conv::slice(locations, kinds)?, conv::slice(firsts, kinds)?) };
    if !conv::divides(firsts, count) {
        return Err(Error::INVALID_VALUE);
    }
    let known = |&location: &CUmemLocation| managed::place(place(location)?).map_err(|_| Error::INVALID_VALUE);
    let places = locations.iter().map(known).collect::<Result<Vec<_>>>()?;
    for (index, (address, size)) in ranges().enumerate() {
        managed::prefetch(
            address,
            size,
            places[firsts.partition_point(|&first| first <= index) - 1],
        )?;
    }
    Ok(())
}

/// `cuStreamAttachMemAsync`.
pub(in crate::api) fn attach(stream: &Stream, address: u64, length: usize, flags: c_uint) -> Result<()> {
    capture::refuse_wait(stream)?;
    managed::attach(address, length as u64, flags)
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
        context::current()?;
        range_attribute(data, data_size, attribute, address, size)
    }

    /// CUDA Driver API, Unified Addressing: `cuMemRangeGetAttributes`.
    fn cuMemRangeGetAttributes(
        data: *mut *mut c_void, sizes: *mut usize, attributes: *mut CUmem_range_attribute, count: usize, address: CUdeviceptr,
        size: usize,
    ) {
        context::current()?;
        // SAFETY: the application promises arrays of `count` elements.
        unsafe { range_attributes(data, sizes, attributes, count, address, size) }
    }

    /// CUDA Driver API, Unified Addressing: `cuMemAdvise`.
    fn cuMemAdvise(address: CUdeviceptr, size: usize, advice: CUmem_advise, device: CUdevice) {
        context::current()?;
        managed::advise(address, size, advice, device)
    }

    /// CUDA Driver API, Unified Addressing: `cuMemAdvise_v2`.
    fn cuMemAdvise_v2(address: CUdeviceptr, size: usize, advice: CUmem_advise, location: CUmemLocation) {
        context::current()?;
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

    /// CUDA Driver API, Unified Addressing: `cuMemPrefetchBatchAsync`.
    fn cuMemPrefetchBatchAsync(
        addresses: *mut CUdeviceptr, sizes: *mut usize, count: usize, locations: *mut CUmemLocation, firsts: *mut usize,
        kinds: usize, flags: c_ulonglong, stream: CUstream,
    ), fn cuMemPrefetchBatchAsync_ptsz(..) |default| {
        let places = Some((locations.cast_const(), firsts.cast_const(), kinds));
        // SAFETY: the application promises the arrays.
        unsafe { prefetch_batch(&*resolve(stream, default)?, addresses, sizes, count, places, flags) }
    }

    /// CUDA Driver API, Unified Addressing: `cuMemDiscardBatchAsync`.
    fn cuMemDiscardBatchAsync(
        addresses: *mut CUdeviceptr, sizes: *mut usize, count: usize, flags: c_ulonglong, stream: CUstream,
    ), fn cuMemDiscardBatchAsync_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { prefetch_batch(&*resolve(stream, default)?, addresses, sizes, count, None, flags) }
    }

    /// CUDA Driver API, Unified Addressing: `cuMemDiscardAndPrefetchBatchAsync`.
    fn cuMemDiscardAndPrefetchBatchAsync(
        addresses: *mut CUdeviceptr, sizes: *mut usize, count: usize, locations: *mut CUmemLocation, firsts: *mut usize,
        kinds: usize, flags: c_ulonglong, stream: CUstream,
    ), fn cuMemDiscardAndPrefetchBatchAsync_ptsz(..) |default| {
        let places = Some((locations.cast_const(), firsts.cast_const(), kinds));
        // SAFETY: as above.
        unsafe { prefetch_batch(&*resolve(stream, default)?, addresses, sizes, count, places, flags) }
    }

    /// CUDA Driver API, Stream Management: `cuStreamAttachMemAsync`.
    fn cuStreamAttachMemAsync(stream: CUstream, address: CUdeviceptr, length: usize, flags: c_uint),
    fn cuStreamAttachMemAsync_ptsz(..) |default| {
        attach(&*resolve(stream, default)?, address, length, flags)
    }
}
