//! Event Management: `cudaEvent*`.
