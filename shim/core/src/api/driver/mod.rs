//! `cu*`: one file per chapter of the CUDA Driver API manual.

mod alloc;
mod context;
mod device;
pub(in crate::api) mod entry_point;
mod error;
mod event;
mod exec;
mod host;
mod init;
mod ipc;
mod library;
mod memcpy;
mod memop;
mod memset;
mod module;
mod occupancy;
mod peer;
mod pointer;
mod profiler;
mod stream;
mod version;
mod vmm;

// The symbol tables name functions without their chapter.
pub use alloc::*;
pub use context::*;
pub use device::*;
pub use entry_point::*;
pub use error::*;
pub use event::*;
pub use exec::*;
pub use host::*;
pub use init::*;
pub use ipc::*;
pub use library::*;
pub use memcpy::*;
pub use memop::*;
pub use memset::*;
pub use module::*;
pub use occupancy::*;
pub use peer::*;
pub use pointer::*;
pub use profiler::*;
pub use stream::*;
pub use version::*;
pub use vmm::*;
