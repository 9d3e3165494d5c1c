//! Execution Control: `cudaLaunchKernel`, `cudaFunc*`.
