//! Peer access: which GPU can reach which, and which context may.

use std::sync::atomic::Ordering;

use super::{Context, Device};
use crate::abi::{CUdevice_P2PAttribute, Error, Result};

/// Whether kernels on `device` could use memory of `peer`; false for a device and itself.
pub fn can_access(device: &Device, peer: &Device) -> bool {
    device.ordinal != peer.ordinal && peer.pool.reachable_by(device.agent)
}

/// `cuDeviceGetP2PAttribute`. [`Error::INVALID_DEVICE`] for a device and itself, [`Error::INVALID_VALUE`] for an attribute
/// that CUDA does not have.
pub fn attribute(attribute: CUdevice_P2PAttribute, device: &Device, peer: &Device) -> Result<i32> {
    if device.ordinal == peer.ordinal {
        return Err(Error::INVALID_DEVICE);
    }
    let reachable = i32::from(can_access(device, peer));
    match attribute {
        // 0 is the fastest link: one hop of xGMI or PCIe.
        CUdevice_P2PAttribute::PERFORMANCE_RANK => {
            let hops = peer.pool.hops_from(device.agent).unwrap_or(1);
            Ok(i32::try_from(hops.saturating_sub(1)).unwrap_or(i32::MAX))
        }
        CUdevice_P2PAttribute::ACCESS_SUPPORTED => Ok(reachable),
        CUdevice_P2PAttribute::NATIVE_ATOMIC_SUPPORTED => Ok(i32::from(peer.pool.atomics_from(device.agent))),
        // No CUDA arrays.
        CUdevice_P2PAttribute::CUDA_ARRAY_ACCESS_SUPPORTED => Ok(0),
        // CUDA 13's "only part of the atomics are native" (recorded: 0).
        CUdevice_P2PAttribute(5) => Ok(0),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// The devices, as bits, whose memory the kernels of any context on `device` may use; and so which GPUs a block of another
/// device must be mapped to.
pub(crate) fn bit(device: &Device) -> u64 {
    1 << device.ordinal
}

/// `cuCtxEnablePeerAccess`: lets `context` use all memory of `peer`'s device, now and later.
///
/// [`Error::PEER_ACCESS_ALREADY_ENABLED`], [`Error::PEER_ACCESS_UNSUPPORTED`], also for the same device (recorded).
pub fn enable(context: &Context, peer: &'static Device) -> Result<()> {
    if !can_access(context.device, peer) {
        return Err(Error::PEER_ACCESS_UNSUPPORTED);
    }
    if context.peers.fetch_or(bit(peer), Ordering::AcqRel) & bit(peer) != 0 {
        return Err(Error::PEER_ACCESS_ALREADY_ENABLED);
    }
    crate::memory::grant(peer, context.device)
}

/// `cuCtxDisablePeerAccess`: [`Error::PEER_ACCESS_NOT_ENABLED`] if it was not. The mappings stay (another library may have
/// asked ROCr for them); only what the API says changes.
pub fn disable(context: &Context, peer: &Device) -> Result<()> {
    if context.peers.fetch_and(!bit(peer), Ordering::AcqRel) & bit(peer) == 0 {
        return Err(Error::PEER_ACCESS_NOT_ENABLED);
    }
    Ok(())
}

/// Whether `context` may use memory of `owner`.
#[inline]
pub fn enabled(context: &Context, owner: &Device) -> bool {
    context.device.ordinal == owner.ordinal || context.peers.load(Ordering::Acquire) & bit(owner) != 0
}
