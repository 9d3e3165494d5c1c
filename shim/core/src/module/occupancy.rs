//! How many blocks of a kernel a compute unit holds at once.
//!
//! gfx90a and gfx942: four SIMDs of 512 vector registers and at most 8 waves each, 64 KiB of LDS.

use kernels_ptx_translate::protocol::WarpLayout;

/// LDS of a compute unit, and the most one block may have.
pub const LDS: u32 = 65536;
/// Most threads of a block.
pub const MAX_THREADS: u32 = 1024;
/// Most blocks on a compute unit, as reported to CUDA (`cudaDevAttrMaxBlocksPerMultiprocessor`).
pub const MAX_BLOCKS: u32 = 32;
const SIMDS: u32 = 4;
const WAVES_PER_SIMD: u32 = 8;
const REGISTERS_PER_SIMD: u32 = 512;
/// Registers are handed out to a wave in groups of this many.
const REGISTER_GRANULE: u32 = 8;
/// LDS is handed out to a block in units of this many bytes.
const LDS_GRANULE: u32 = 512;

/// What a kernel takes.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Vector registers of a wave; 0 when unknown.
    pub vgprs: u32,
    /// How warps lie on waves.
    pub layout: WarpLayout,
    /// Bytes of static shared memory.
    pub static_shared: u32,
}

/// Blocks of `threads` threads with `dynamic_shared` bytes on one compute unit; 0 when a block does not fit at all.
pub fn blocks_per_unit(needs: &Needs, threads: u32, dynamic_shared: u64) -> u32 {
    let shared = u64::from(needs.static_shared) + dynamic_shared;
    if threads == 0 || threads > MAX_THREADS || shared > u64::from(LDS) {
        return 0;
    }
    let waves = match needs.layout {
        WarpLayout::Paired => threads.div_ceil(64),
        WarpLayout::Solo => threads.div_ceil(32),
    };
    let registers = needs.vgprs.max(1).next_multiple_of(REGISTER_GRANULE);
    let waves_per_simd = (REGISTERS_PER_SIMD / registers).min(WAVES_PER_SIMD);
    let by_waves = waves_per_simd * SIMDS / waves;
    let by_shared = match (shared as u32).next_multiple_of(LDS_GRANULE) {
        0 => MAX_BLOCKS,
        each => LDS / each,
    };
    by_waves.min(by_shared).min(MAX_BLOCKS)
}

/// The block size, a multiple of 32 up to `limit`, that keeps most threads resident; the larger of equals. `shared` gives a
/// size's dynamic shared memory. Also the number of such blocks on one compute unit.
pub fn best_block_size(needs: &Needs, limit: u32, shared: impl Fn(u32) -> u64) -> (u32, u32) {
    let limit = if limit == 0 {
        MAX_THREADS
    } else {
        limit.min(MAX_THREADS)
    };
    let mut best = (0, 0);
    let mut threads = limit.next_multiple_of(32);
    while threads >= 32 {
        let size = threads.min(limit);
        let blocks = blocks_per_unit(needs, size, shared(size));
        if blocks * size > best.0 * best.1 {
            best = (size, blocks);
        }
        threads -= 32;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIGHT: Needs = Needs {
        vgprs: 16,
        layout: WarpLayout::Paired,
        static_shared: 0,
    };

    #[test]
    fn waves_registers_and_shared_memory_each_limit() {
        assert_eq!(blocks_per_unit(&LIGHT, 1024, 0), 2);
        assert_eq!(blocks_per_unit(&LIGHT, 256, 0), 8);
        assert_eq!(blocks_per_unit(&LIGHT, 1, 0), 32);
        assert_eq!(blocks_per_unit(&LIGHT, 1, 16384), 4);
        assert_eq!(blocks_per_unit(&Needs { vgprs: 128, ..LIGHT }, 256, 0), 4);
        assert_eq!(
            blocks_per_unit(
                &Needs {
                    layout: WarpLayout::Solo,
                    ..LIGHT
                },
                256,
                0
            ),
            4
        );
    }

    #[test]
    fn what_cannot_run_has_no_blocks() {
        assert_eq!(blocks_per_unit(&LIGHT, 1025, 0), 0);
        assert_eq!(blocks_per_unit(&LIGHT, 64, 65537), 0);
        assert_eq!(blocks_per_unit(&Needs { vgprs: 512, ..LIGHT }, 1024, 0), 0);
    }

    #[test]
    fn the_best_block_fills_the_unit_within_the_limit() {
        assert_eq!(best_block_size(&LIGHT, 0, |_| 0), (1024, 2));
        let (size, blocks) = best_block_size(&LIGHT, 100, |_| 0);
        assert!(size <= 100 && size * blocks >= 1024, "{size} x {blocks}");
    }
}
