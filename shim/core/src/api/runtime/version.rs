//! Version Management: `cudaDriverGetVersion`, `cudaRuntimeGetVersion`.
