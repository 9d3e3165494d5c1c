//! Fat binaries, modules, kernels, launch.

pub mod occupancy;

/// Forgets everything that was loaded in a context that has ended; its memory goes with it.
pub(crate) fn context_ended(_owner: u64) {}
