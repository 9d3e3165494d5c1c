//! Error Handling: `cuGetErrorName`, `cuGetErrorString`.
