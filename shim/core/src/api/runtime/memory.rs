//! Memory Management: `cudaMalloc`, `cudaMemcpy*`, `cudaMemset*`, host memory, symbols.
