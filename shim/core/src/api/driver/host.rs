//! Memory Management, host memory: `cuMemHost*`, `cuMemAllocHost`, `cuMemFreeHost`.
