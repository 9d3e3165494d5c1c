//! Driver Entry Point Access: `cudaGetDriverEntryPoint`, `cudaGetExportTable`.
