//! PTX to LLVM IR text to a CDNA code object, in a worker process.
//!
//! Programs that launch kernels hold only [`protocol`] and [`client`]: hostile PTX and LLVM aborts stay in the worker.

pub mod cache;
pub mod channel;
pub mod client;
pub mod code_object;
#[cfg(feature = "translator")]
pub mod comgr;
pub mod config;
pub mod identity;
#[cfg(feature = "translator")]
pub mod lower;
pub mod protocol;
#[cfg(feature = "translator")]
pub mod ptx;
pub mod texture;
#[cfg(feature = "translator")]
pub mod translate;
