//! Peer Device Memory Access: `cudaDeviceCanAccessPeer`, `cudaDeviceEnablePeerAccess`.
