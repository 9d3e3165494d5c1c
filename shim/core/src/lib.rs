//! Regauge's behaviour and state: the CUDA driver and runtime APIs over HSA.
//!
//! Data flows one way: [`api`] (C boundary: check, convert, forward), then `device`, `memory`, `stream`, `module`, `graph`
//! (all behaviour), then `hsa` (the safe wrapper), then the `hsa-sys` crate (raw).

pub mod abi;
pub mod api;
mod attention;
mod config;
mod device;
mod exit;
mod fork;
mod graph;
mod handle;
pub mod hsa;
mod lock;
mod log;
mod memory;
mod module;
mod prefetch;
mod shared_file;
mod stream;
mod thread_state;
