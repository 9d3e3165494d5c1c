//! Peer Device Memory Access: `cudaDeviceCanAccessPeer`, `cudaDeviceEnablePeerAccess`.

use core::ffi::{c_int, c_uint};

use crate::abi::{CUdevice_P2PAttribute, Error, conv};
use crate::device::{self, context, peer};
use crate::runtime;

runtime! {
    /// CUDA Runtime API, Peer Device Memory Access: `cudaDeviceCanAccessPeer`.
    fn cudaDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        device::init()?;
        let (device, peer) = (device::get(device)?, device::get(peer)?);
        conv::write(can, c_int::from(peer::can_access(device, peer)))
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetP2PAttribute`.
    fn cudaDeviceGetP2PAttribute(value: *mut c_int, attribute: CUdevice_P2PAttribute, device: c_int, peer: c_int) {
        device::init()?;
        conv::write(value, peer::attribute(attribute, device::get(device)?, device::get(peer)?)?)
    }

    /// CUDA Runtime API, Peer Device Memory Access: `cudaDeviceEnablePeerAccess`. The peer's primary context comes to life.
    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let context = context::runtime_current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let peer = device::get(peer)?;
        if peer::can_access(context.device, peer) {
            context::runtime_primary(peer)?;
        }
        peer::enable(context, peer)
    }

    /// CUDA Runtime API, Peer Device Memory Access: `cudaDeviceDisablePeerAccess`.
    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        let context = context::runtime_current()?;
        peer::disable(context, device::get(peer)?)
    }
}
