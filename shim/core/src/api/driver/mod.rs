//! `cu*`: one file per chapter of the CUDA Driver API manual.

mod alloc;
mod context;
mod device;
pub(in crate::api) mod entry_point;
mod error;
mod event;
mod exec;
mod graph;
mod host;
mod init;
mod ipc;
mod library;
mod memcpy;
mod memop;
mod memory;
mod memset;
mod module;
mod occupancy;
mod peer;
mod pointer;
mod pool;
mod profiler;
mod stream;
mod version;
mod vmm;

// The symbol tables name functions without their chapter; a chapter that is still empty re-exports nothing.
#[allow(unused_imports)]
pub use alloc::*;
#[allow(unused_imports)]
pub use context::*;
#[allow(unused_imports)]
pub use device::*;
#[allow(unused_imports)]
pub use entry_point::*;
#[allow(unused_imports)]
pub use error::*;
#[allow(unused_imports)]
pub use event::*;
#[allow(unused_imports)]
pub use exec::*;
#[allow(unused_imports)]
pub use graph::*;
#[allow(unused_imports)]
pub use host::*;
#[allow(unused_imports)]
pub use init::*;
#[allow(unused_imports)]
pub use ipc::*;
#[allow(unused_imports)]
pub use library::*;
#[allow(unused_imports)]
pub use memcpy::*;
#[allow(unused_imports)]
pub use memop::*;
#[allow(unused_imports)]
pub use memory::*;
#[allow(unused_imports)]
pub use memset::*;
#[allow(unused_imports)]
pub use module::*;
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
pub use stream::*;
#[allow(unused_imports)]
pub use version::*;
#[allow(unused_imports)]
pub use vmm::*;
