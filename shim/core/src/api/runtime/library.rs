//! Library Management: `cudaLibrary*`, `cudaKernel*`.
