//! Memory Management: advice about managed memory, `cudaMemAdvise`, `cudaMemPrefetchAsync`, `cudaMemRangeGetAttribute`,
//! `cudaStreamAttachMemAsync`.

use core::ffi::{c_int, c_uint, c_void};

use super::stream::resolve;
use crate::abi::{
    CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, Error, cudaMemLocation, cudaStream_t,
};
use crate::api::driver::{attach, place, prefetch, range_attribute, range_attributes};
use crate::device;
use crate::memory::managed;
use crate::{runtime, streamed};

/// The driver's form of a location: the same numbers.
fn location(location: cudaMemLocation) -> CUmemLocation {
    CUmemLocation {
        r#type: CUmemLocationType(location.r#type.0),
        id: location.id,
    }
}

runtime! {
    /// CUDA Runtime API, Memory Management: `cudaMemAdvise`.
    fn cudaMemAdvise(address: *const c_void, size: usize, advice: c_int, device: c_int) {
        device::init()?;
        managed::advise(address.addr() as u64, size, CUmem_advise(advice), device)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemAdvise_v2`.
    fn cudaMemAdvise_v2(address: *const c_void, size: usize, advice: c_int, at: cudaMemLocation) {
        device::init()?;
        managed::advise(address.addr() as u64, size, CUmem_advise(advice), place(location(at)).unwrap_or(-1))
    }

    /// CUDA Runtime API, Memory Management: `cudaMemRangeGetAttribute`.
    fn cudaMemRangeGetAttribute(
        data: *mut c_void, data_size: usize, attribute: CUmem_range_attribute, address: *const c_void, size: usize,
    ) {
        device::init()?;
        range_attribute(data, data_size, attribute, address.addr() as u64, size)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemRangeGetAttributes`.
    fn cudaMemRangeGetAttributes(
        data: *mut *mut c_void, sizes: *mut usize, attributes: *mut CUmem_range_attribute, count: usize,
        address: *const c_void, size: usize,
    ) {
        device::init()?;
        // SAFETY: the application promises arrays of `count` elements.
        unsafe { range_attributes(data, sizes, attributes, count, address.addr() as u64, size) }
    }
}

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemPrefetchAsync`.
    fn cudaMemPrefetchAsync(address: *const c_void, size: usize, device: c_int, stream: cudaStream_t),
    fn cudaMemPrefetchAsync_ptsz(..) |default| {
        prefetch(&*resolve(stream, default)?, address.addr() as u64, size, device)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemPrefetchAsync_v2`.
    fn cudaMemPrefetchAsync_v2(
        address: *const c_void, size: usize, at: cudaMemLocation, flags: c_uint, stream: cudaStream_t,
    ), fn cudaMemPrefetchAsync_v2_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        prefetch(&stream, address.addr() as u64, size, place(location(at))?)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamAttachMemAsync`.
    fn cudaStreamAttachMemAsync(stream: cudaStream_t, address: *mut c_void, length: usize, flags: c_uint),
    fn cudaStreamAttachMemAsync_ptsz(..) |default| {
        attach(&*resolve(stream, default)?, address.addr() as u64, length, flags)
    }
}
