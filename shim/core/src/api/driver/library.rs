//! Library Management: `cuLibrary*`, `cuKernel*`.
