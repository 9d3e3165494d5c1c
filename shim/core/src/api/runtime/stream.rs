//! Stream Management: `cudaStream*`.
