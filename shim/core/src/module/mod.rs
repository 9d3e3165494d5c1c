//! Fat binaries, modules, kernels, launch.
