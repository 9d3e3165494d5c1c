//! Memory Management: batches of copies, `cudaMemcpyBatchAsync`.

use core::ffi::c_void;

use super::stream::resolve;
use crate::abi::{CUmemcpyAttributes, cudaStream_t};
use crate::api::driver::copy_batch;
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
}
