//! Driver Entry Point Access: `cuGetProcAddress`, `cuGetExportTable`.
