//! Stream Ordered Memory Allocator: `cuMemAllocAsync`, `cuMemPool*`.
