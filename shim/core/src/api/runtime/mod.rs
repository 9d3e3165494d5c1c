//! `cuda*`: one file per chapter of the CUDA Runtime API manual.

mod alloc;
mod capture;
mod device;
mod entry_point;
mod error;
mod event;
mod execution;
mod graph;
mod hooked;
mod library;
mod memcpy;
mod memset;
mod occupancy;
mod peer;
mod pointer;
mod pool;
mod profiler;
mod registration;
mod stream;
mod symbol;
mod texture;
mod version;

// The symbol tables name functions without their chapter.
pub use alloc::*;
pub use capture::*;
pub use device::*;
pub use entry_point::*;
pub use error::*;
pub use event::*;
pub use execution::*;
pub use graph::*;
pub use library::*;
pub use memcpy::*;
pub use memset::*;
pub use occupancy::*;
pub use peer::*;
pub use pointer::*;
pub use pool::*;
pub use profiler::*;
pub use registration::*;
pub use stream::*;
pub use symbol::*;
pub use texture::*;
pub use version::*;
