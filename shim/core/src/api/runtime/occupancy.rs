//! Occupancy: `cudaOccupancy*`.

use core::ffi::{c_int, c_uint, c_void};

use super::execution::function_of;
use crate::api::driver;
use crate::device::context;
use crate::runtime;

runtime! {
    /// CUDA Runtime API, Occupancy: `cudaOccupancyMaxActiveBlocksPerMultiprocessor`.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, symbol: *const c_void, threads: c_int, shared: usize,
    ) {
        driver::active_blocks(blocks, threads, shared, 0, || function_of(symbol, context::runtime_current()?))
    }

    /// CUDA Runtime API, Occupancy: `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, symbol: *const c_void, threads: c_int, shared: usize, flags: c_uint,
    ) {
        driver::active_blocks(blocks, threads, shared, flags, || function_of(symbol, context::runtime_current()?))
    }

    /// CUDA Runtime API, Occupancy: `cudaOccupancyAvailableDynamicSMemPerBlock`.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        size: *mut usize, symbol: *const c_void, blocks: c_int, threads: c_int,
    ) {
        driver::available_shared(size, blocks, threads, || function_of(symbol, context::runtime_current()?))
    }
}
