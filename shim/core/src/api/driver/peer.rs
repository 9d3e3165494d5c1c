//! Peer Context Memory Access: `cuDeviceCanAccessPeer`, `cuCtxEnablePeerAccess`, `cuCtxDisablePeerAccess`.

use core::ffi::{c_int, c_uint};

use crate::abi::{CUcontext, CUdevice, CUdevice_P2PAttribute, Error, conv};
use crate::device::{self, Context, context, peer};
use crate::driver;

driver! {
    /// CUDA Driver API, Peer Context Memory Access: `cuDeviceCanAccessPeer`.
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) {
        let (device, peer) = (device::get(device)?, device::get(peer)?);
        conv::write(can, c_int::from(peer::can_access(device, peer)))
    }

    /// CUDA Driver API, Peer Context Memory Access: `cuDeviceGetP2PAttribute`.
    fn cuDeviceGetP2PAttribute(value: *mut c_int, attribute: CUdevice_P2PAttribute, device: CUdevice, peer: CUdevice) {
        conv::write(value, peer::attribute(attribute, device::get(device)?, device::get(peer)?)?)
    }

    /// CUDA Driver API, Peer Context Memory Access: `cuCtxEnablePeerAccess`.
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) {
        let context = context::current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let peer = Context::from_handle(peer).map_err(|_| Error::DEVICE_UNINITIALIZED)?;
        peer.check()?;
        peer::enable(context, peer.device)
    }

    /// CUDA Driver API, Peer Context Memory Access: `cuCtxDisablePeerAccess`.
    fn cuCtxDisablePeerAccess(peer: CUcontext) {
        let context = context::current()?;
        let peer = Context::from_handle(peer).map_err(|_| Error::DEVICE_UNINITIALIZED)?;
        peer::disable(context, peer.device)
    }
}
