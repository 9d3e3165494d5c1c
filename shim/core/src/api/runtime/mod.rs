//! `cuda*`: one file per chapter of the CUDA Runtime API manual.

mod alloc;
mod device;
mod entry_point;
mod error;
mod event;
mod execution;
mod graph;
mod hooked;
mod library;
mod memcpy;
mod memory;
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

// The symbol tables name functions without their chapter; a chapter that is still empty re-exports nothing.
#[allow(unused_imports)]
pub use alloc::*;
#[allow(unused_imports)]
pub use device::*;
#[allow(unused_imports)]
pub use entry_point::*;
#[allow(unused_imports)]
pub use error::*;
#[allow(unused_imports)]
pub use event::*;
#[allow(unused_imports)]
pub use execution::*;
#[allow(unused_imports)]
pub use graph::*;
#[allow(unused_imports)]
pub use library::*;
#[allow(unused_imports)]
pub use memcpy::*;
#[allow(unused_imports)]
pub use memory::*;
#[allow(unused_imports)]
pub use memset::*;
#[allow(unused_imports)]
pub use occupancy::*;
#[allow(unused_imports)]
pub use peer::*;
#[allow(unused_imports)]
pub use pointer::*;
#[allow(unused_imports)]
pub use pool::*;
#[allow(unused_imports)]
pub use profiler::*;
#[allow(unused_imports)]
pub use registration::*;
#[allow(unused_imports)]
pub use stream::*;
#[allow(unused_imports)]
pub use symbol::*;
#[allow(unused_imports)]
pub use texture::*;
#[allow(unused_imports)]
pub use version::*;
