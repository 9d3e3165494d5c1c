//! Decoder and interpreter for AMD CDNA machine code (gfx90a, gfx942).
//!
//! The crate knows instructions, waves and work-groups. It does not know queues, ioctls or processes: whoever embeds
//! it (the `vgpu` preload library, a unit test) hands it memory through [`memory::GpuMemory`], a way to reach the outside
//! through [`dispatch::Host`], and one AQL dispatch at a time through [`dispatch::run`].
//!
//! ```text
//! isa        words -> Inst (decode), Inst -> text (Display)
//! wave       registers of one wave
//! exec       one file per family of instructions; access.rs takes lanes to bytes
//! alu        arithmetic, bit for bit
//! setup      kernel descriptor and dispatch -> initial registers
//! workgroup  waves in turn, barriers
//! coherence  caches that show missing fences
//! schedule   work-groups in turn, on one thread or several
//! ```
//!
//! # Stricter than the card
//!
//! What hardware lets pass or leaves undefined stops the dispatch, with the instruction, its address and the kernel object
//! named: accesses past the LDS or scratch allocation, misaligned atomics, registers past the allocation, reserved encodings and
//! operand codes, FLAT_SCRATCH that is not the wave's. Registers, LDS and scratch start poisoned.
//!
//! # Other than the card
//!
//! - Memory is coherent, cache maintenance and scope bits do nothing, unless the embedder asks for the caches of
//!   [`coherence`]. Memory instructions complete in order.
//! - `s_trap` ends the dispatch with [`dispatch::Stop::Trap`]; no trap handler runs.
//! - `s_memtime` is a multiple of the 100 MHz clock. TRAPSTS reads 0: exception flags are not kept.
//! - A load into half a register clears the other half, as on cards with SRAM ECC.
//! - `tests/coverage.rs` lists the instructions that are refused, with reasons.

pub mod alu;
pub mod coherence;
pub mod dispatch;
pub mod exec;
pub mod isa;
pub mod memory;
pub mod random;
mod schedule;
mod setup;
pub mod wave;
mod workgroup;

/// An instruction set this crate decodes and executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// CDNA 2: MI210, MI250, MI250X.
    Gfx90a,
    /// CDNA 3: MI300A, MI300X.
    Gfx942,
}
