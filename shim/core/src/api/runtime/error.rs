//! Error Handling: `cudaGetLastError`, `cudaGetErrorString`.
