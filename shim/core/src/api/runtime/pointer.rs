//! Unified Addressing: `cudaPointerGetAttributes`.
