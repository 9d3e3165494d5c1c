//! Peer Context Memory Access: `cuDeviceCanAccessPeer`, `cuCtxEnablePeerAccess`.
