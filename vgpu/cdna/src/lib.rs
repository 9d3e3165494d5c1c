//! Decoder and interpreter for AMD CDNA machine code (gfx90a, gfx942).
//!
//! The crate knows instructions, waves and work-groups. It does not know queues, ioctls or processes: whoever embeds
//! it (the `vgpu` preload library, a unit test) hands it memory through [`memory::GpuMemory`], a way to reach the outside
//! through [`dispatch::Host`], and one AQL dispatch at a time through [`dispatch::run`].

pub mod alu;
pub mod dispatch;
pub mod exec;
pub mod isa;
pub mod memory;
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
