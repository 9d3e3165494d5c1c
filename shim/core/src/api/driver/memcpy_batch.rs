//! Memory Management: batches of copies, `cuMemcpyBatchAsync`.

use super::memcpy::{UNIFIED, linear};
use super::stream::resolve;
use crate::abi::{CUdeviceptr, CUmemcpyAttributes, CUstream, Error, Result, conv};
use crate::graph::capture;
use crate::stream::locate::{Place, locate};
use crate::stream::{Kind, Stream};
use crate::streamed;

/// `CU_MEMCPY_SRC_ACCESS_ORDER_*`: in the stream's order, during the call, or at any time.
pub(super) const STREAM_ORDER: i32 = 1;
pub(super) const ANY_ORDER: i32 = 3;
/// `CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE`, a hint.
pub(super) const OVERLAP: u32 = 1;

/// Copies each pair, in some order of their own, in the order of `stream`. `failed` gets the index of the copy that was refused.
///
/// # Errors
/// INVALID_VALUE for an empty batch, the legacy default stream, attributes that do not begin with the first copy, and copies of
/// nothing; STREAM_CAPTURE_UNSUPPORTED where the stream is captured, which goes on; else as a copy.
///
/// # Safety
/// Arrays of `count` and of `kinds` elements.
#[allow(clippy::too_many_arguments)]
pub(in crate::api) unsafe fn copy_batch(
    stream: &Stream,
    dsts: *const u64,
    srcs: *const u64,
    sizes: *const usize,
    count: usize,
    attributes: *const CUmemcpyAttributes,
    firsts: *const usize,
    kinds: usize,
    failed: *mut usize,
) -> Result<()> {
    if stream.kind() == Kind::Legacy {
        return Err(Error::INVALID_VALUE);
    }
    // All of the batch is wrong until one copy is.
    conv::write_if(failed, usize::MAX);
    // SAFETY: the caller's promise.
    let (dsts, srcs, sizes, attributes, firsts) = unsafe {
        (
            conv::slice(dsts, count)?,
            conv::slice(srcs, count)?,
            conv::slice(sizes, count)?,
            conv::slice(attributes, kinds)?,
            conv::slice(firsts, kinds)?,
        )
    };
    let known = attributes.iter().all(|attribute| {
        (STREAM_ORDER..=ANY_ORDER).contains(&attribute.srcAccessOrder) && attribute.flags & !OVERLAP == 0
    });
    if count == 0 || !conv::divides(firsts, count) || !known {
        return Err(Error::INVALID_VALUE);
    }
    if capture::intercept(stream)?.is_some() {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    for index in 0..count {
        let attribute = &attributes[firsts.partition_point(|&first| first <= index) - 1];
        let (dst, src, size) = (dsts[index], srcs[index], sizes[index]);
        let copied = || -> Result<()> {
            if size == 0 {
                return Err(Error::INVALID_VALUE);
            }
            if attribute.srcAccessOrder == STREAM_ORDER && matches!(locate(src, size as u64)?, Place::Pageable) {
                // Read at the call otherwise, which may be before what the stream still does to it.
                stream.wait_turn()?;
            }
            linear(stream, dst, src, size, UNIFIED, false)
        };
        copied().inspect_err(|_| conv::write_if(failed, index))?;
    }
    Ok(())
}

streamed! { driver
    /// CUDA Driver API, Memory Management: `cuMemcpyBatchAsync`.
    fn cuMemcpyBatchAsync(
        dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attributes: *mut CUmemcpyAttributes,
        firsts: *mut usize, kinds: usize, failed: *mut usize, stream: CUstream,
    ), fn cuMemcpyBatchAsync_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        // SAFETY: the application promises the arrays.
        unsafe { copy_batch(&stream, dsts, srcs, sizes, count, attributes, firsts, kinds, failed) }
    }

    /// CUDA Driver API from 13.0: `cuMemcpyBatchAsync`.
    fn cuMemcpyBatchAsync_v2(
        dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attributes: *mut CUmemcpyAttributes,
        firsts: *mut usize, kinds: usize, stream: CUstream,
    ), fn cuMemcpyBatchAsync_v2_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        // SAFETY: as above.
        unsafe { copy_batch(&stream, dsts, srcs, sizes, count, attributes, firsts, kinds, core::ptr::null_mut()) }
    }
}
