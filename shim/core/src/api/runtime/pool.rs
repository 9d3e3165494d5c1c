//! Stream Ordered Memory Allocator: `cudaMallocAsync`, `cudaMemPool*`.
