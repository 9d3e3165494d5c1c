//! Occupancy: `cuOccupancy*`.

use core::ffi::{c_int, c_uint};
use std::sync::Arc;

use crate::abi::{CUfunction, CUoccupancyB2DSize, Error, Result, conv};
use crate::device::context;
use crate::driver;
use crate::module::{self, Function};

/// `CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE`, the only flag.
const KNOWN_FLAGS: c_uint = 1;

/// Blocks on one compute unit, with the argument checks of both APIs.
pub(in crate::api) fn active_blocks(
    out: *mut c_int,
    threads: c_int,
    shared: usize,
    flags: c_uint,
    function: impl FnOnce() -> Result<Arc<Function>>,
) -> Result<()> {
    let function = function()?;
    if out.is_null() || threads <= 0 || flags & !KNOWN_FLAGS != 0 {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(out, function.blocks_per_unit(threads as u32, shared as u64)? as c_int)
}

/// Dynamic shared memory each of `blocks` blocks may have on one compute unit.
pub(in crate::api) fn available_shared(
    out: *mut usize,
    blocks: c_int,
    threads: c_int,
    function: impl FnOnce() -> Result<Arc<Function>>,
) -> Result<()> {
    let function = function()?;
    if out.is_null() || blocks <= 0 || threads <= 0 {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(out, function.available_dynamic_shared(blocks as u32) as usize)
}

fn potential(
    grid: *mut c_int,
    block: *mut c_int,
    hfunc: CUfunction,
    per_block: CUoccupancyB2DSize,
    shared: usize,
    limit: c_int,
) -> Result<()> {
    let context = context::current()?;
    let function = module::function(hfunc as u64, || Ok(context))?;
    if grid.is_null() || block.is_null() || limit < 0 {
        return Err(Error::INVALID_VALUE);
    }
    let shared_of = |threads: u32| match per_block {
        // SAFETY: the application's function of a block size.
        Some(size) => unsafe { size(threads as c_int) as u64 },
        None => shared as u64,
    };
    let (threads, blocks) = function.best_block_size(limit as u32, shared_of)?;
    conv::write(grid, (blocks * context.device.agent.compute_units) as c_int)?;
    conv::write(block, threads as c_int)
}

/// The function behind a handle. Unlike other questions about functions, these need a current context (recorded).
fn current_function(handle: CUfunction) -> Result<Arc<Function>> {
    let context = context::current()?;
    module::function(handle as u64, || Ok(context))
}

driver! {
    /// CUDA Driver API, Occupancy: `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, hfunc: CUfunction, threads: c_int, shared: usize) {
        active_blocks(blocks, threads, shared, 0, || current_function(hfunc))
    }

    /// CUDA Driver API, Occupancy: `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, hfunc: CUfunction, threads: c_int, shared: usize, flags: c_uint,
    ) {
        active_blocks(blocks, threads, shared, flags, || current_function(hfunc))
    }

    /// CUDA Driver API, Occupancy: `cuOccupancyMaxPotentialBlockSize`.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, hfunc: CUfunction, per_block: CUoccupancyB2DSize, shared: usize, limit: c_int,
    ) {
        potential(grid, block, hfunc, per_block, shared, limit)
    }

    /// CUDA Driver API, Occupancy: `cuOccupancyMaxPotentialBlockSizeWithFlags`.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int, block: *mut c_int, hfunc: CUfunction, per_block: CUoccupancyB2DSize, shared: usize, limit: c_int,
        flags: c_uint,
    ) {
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Error::INVALID_VALUE);
        }
        potential(grid, block, hfunc, per_block, shared, limit)
    }

    /// CUDA Driver API, Occupancy: `cuOccupancyAvailableDynamicSMemPerBlock`.
    fn cuOccupancyAvailableDynamicSMemPerBlock(size: *mut usize, hfunc: CUfunction, blocks: c_int, threads: c_int) {
        available_shared(size, blocks, threads, || current_function(hfunc))
    }
}
