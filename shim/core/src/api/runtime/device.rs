//! Device Management: `cudaDevice*`, `cudaSetDevice`, `cudaGetDeviceProperties`, `cudaIpc*`.
