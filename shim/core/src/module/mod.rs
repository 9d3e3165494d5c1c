//! Fat binaries, modules, kernels, launch.

pub mod occupancy;
