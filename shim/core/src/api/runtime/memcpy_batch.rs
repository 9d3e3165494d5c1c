//! Memory Management: batches of copies, `cudaMemcpyBatchAsync` and `cudaMemcpy3DBatchAsync`.

use core::ffi::{c_ulonglong, c_void};

use super::stream::resolve;
use crate::abi::{CUDA_MEMCPY3D_BATCH_OP, CUmemcpyAttributes, cudaStream_t};
use crate::api::driver::{copy_batch, copy_boxes};
use crate::streamed;

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemcpyBatchAsync`.
    fn cudaMemcpyBatchAsync(
        dsts: *mut *mut c_void, srcs: *mut *mut c_void, sizes: *mut usize, count: usize, attributes: *mut CUmemcpyAttributes,
        firsts: *mut usize, kinds: usize, failed: *mut usize, stream: cudaStream_t,
    ), fn cudaMemcpyBatchAsync_ptsz(..) |default| {
        let (stream, dsts, srcs) = (resolve(stream, default)?, dsts.cast::<u64>(), srcs.cast::<u64>());
        // SAFETY: the application promises the arrays.
        unsafe { copy_batch(&stream, dsts, srcs, sizes, count, attributes, firsts, kinds, failed) }
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3DBatchAsync`.
    fn cudaMemcpy3DBatchAsync(
        count: usize, operations: *mut CUDA_MEMCPY3D_BATCH_OP, failed: *mut usize, flags: c_ulonglong, stream: cudaStream_t,
    ), fn cudaMemcpy3DBatchAsync_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { copy_boxes(&*resolve(stream, default)?, count, operations, failed, flags) }
    }
}
