//! `nvml*`: what clients ask of NVML at start-up, answered from HSA.
