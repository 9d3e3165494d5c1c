//! Regauge's behaviour and state: the CUDA driver and runtime APIs over HSA.
//!
//! Data flows one way: [`api`] (C boundary: check, convert, forward), then `device`, `memory`, `stream`, `module`, `graph`
//! (all behaviour), then `hsa` (the safe wrapper), then the `hsa-sys` crate (raw).

pub mod abi;
pub mod api;
pub mod attention;
pub mod config;
pub mod device;
pub mod exit;
pub mod fork;
pub mod graph;
pub mod handle;
pub mod hsa;
pub mod lock;
pub mod log;
pub mod memory;
pub mod module;
pub mod shared_file;
pub mod stream;
pub mod thread_state;
