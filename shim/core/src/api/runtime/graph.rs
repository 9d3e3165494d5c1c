//! Graph Management: `cudaGraph*`, `cudaStreamBeginCapture`.
