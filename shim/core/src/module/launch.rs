//! Launching a kernel: checks, arguments, dispatch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::args::{self, Hidden, Source};
use super::function::Function;
use super::geometry::geometry;
use super::{occupancy, services};
use crate::abi::{Error, Result};
use crate::hsa::fault;
use crate::hsa::queue::{Dispatch, Packet};
use crate::stream::Stream;
use crate::stream::completion::Resource;
use crate::stream::staging::Chunk;

/// The dynamic part of shared memory begins at a multiple of this many bytes after the static part.
const DYNAMIC_ALIGNMENT: u32 = 16;

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
}

impl Shape {
    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Checks what holds for every kernel.
    ///
    /// # Errors
    /// INVALID_CONFIGURATION for zeroes and for sizes beyond CUDA's limits (the driver API calls it INVALID_VALUE).
    pub fn check(&self) -> Result<()> {
        let limits = [(self.grid, [0x7fff_ffff, 65535, 65535]), (self.block, [1024, 1024, 64])];
        let within = limits
            .iter()
            .all(|(sizes, most)| sizes.iter().zip(most).all(|(n, most)| (1..=*most).contains(n)));
        if within && self.threads() <= u64::from(occupancy::MAX_THREADS) {
            Ok(())
        } else {
            Err(Error::INVALID_CONFIGURATION)
        }
    }
}

/// Launches `function` in `stream`. The shape has passed [`Shape::check`].
///
/// # Errors
/// INVALID_VALUE when the shape breaks the kernel's own bounds or the arguments are missing, COOPERATIVE_LAUNCH_TOO_LARGE,
/// what the translation of the kernel failed with, or the process's fault.
///
/// # Safety
/// As [`args::pack`].
pub unsafe fn launch(
    function: &Arc<Function>,
    stream: &Stream,
    shape: &Shape,
    source: Source,
    cooperative: bool,
) -> Result<()> {
    static NEXT_GRID: AtomicU64 = AtomicU64::new(1);

    fault::check()?;
    function.check_shape(shape)?;
    let module = function.module()?;
    if cooperative {
        let blocks: u64 = shape.grid.iter().map(|&n| u64::from(n)).product();
        let resident = function.blocks_per_unit(shape.threads() as u32, u64::from(shape.dynamic_shared))?;
        if blocks > u64::from(resident) * u64::from(stream.device().agent.compute_units) {
            return Err(Error::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    let loaded = function.for_block(shape.block)?;
    let ring = loaded
        .uses_printf()
        .then(|| services::ring(module.context()))
        .transpose()?;
    let heap = loaded
        .uses_heap()
        .then(|| services::heap(module.context()))
        .transpose()?;
    let hidden = Hidden {
        data: module.data_address(),
        ring: ring.as_ref().map_or(0, |ring| ring.address()),
        heap: heap.as_ref().map_or(0, |heap| heap.address()),
        grid_id: NEXT_GRID.fetch_add(1, Ordering::Relaxed),
    };
    // SAFETY: the caller's promise.
    let arguments = unsafe { args::pack(function.entry(), source, shape, &hidden) }?;
    let geometry = geometry(loaded.layout(), shape)?;
    let mut group_size = loaded.symbol().group_size;
    if shape.dynamic_shared > 0 {
        group_size = group_size.next_multiple_of(DYNAMIC_ALIGNMENT) + shape.dynamic_shared;
    }
    if group_size > occupancy::LDS {
        return Err(Error::INVALID_VALUE);
    }
    let mut chunk = Chunk::new(
        stream.device(),
        arguments.len().max(loaded.symbol().kernarg_size as usize),
    )?;
    chunk.bytes()[..arguments.len()].copy_from_slice(&arguments);
    let dispatch = Dispatch {
        workgroup: geometry.workgroup,
        grid: geometry.grid,
        private_size: loaded.symbol().private_size,
        group_size,
        kernel_object: loaded.symbol().object,
        kernarg: chunk.address(),
    };
    log::trace!("launch {} {shape:?} as {geometry:?}", function.name());
    let resources: Vec<Resource> = vec![
        Box::new(chunk),
        Box::new(loaded),
        Box::new(Arc::clone(&module)),
        Box::new((ring.clone(), heap)),
    ];
    let submit = || stream.packet(Packet::dispatch(&dispatch), resources);
    match ring {
        Some(ring) => ring.with_writer(&module, submit),
        None => submit().map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_refused_as_recorded() {
        let shape = |grid, block| Shape {
            grid,
            block,
            dynamic_shared: 0,
        };
        let one = [1, 1, 1];
        for (grid, block) in [
            (one, [1024, 1, 1]),
            (one, [1, 1, 64]),
            ([1, 65535, 1], one),
            ([0x7fff_ffff, 1, 1], one),
            (one, [32, 32, 1]),
        ] {
            assert_eq!(shape(grid, block).check(), Ok(()), "{grid:?} {block:?}");
        }
        for (grid, block) in [
            ([0, 1, 1], one),
            (one, [0, 1, 1]),
            (one, [1025, 1, 1]),
            (one, [1, 1025, 1]),
            (one, [1, 1, 65]),
            (one, [32, 33, 1]),
            ([1, 65536, 1], one),
            ([1, 1, 65536], one),
            ([0x8000_0000, 1, 1], one),
        ] {
            assert_eq!(
                shape(grid, block).check(),
                Err(Error::INVALID_CONFIGURATION),
                "{grid:?} {block:?}"
            );
        }
    }
}
