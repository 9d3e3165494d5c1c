//! Device Management: `cuDeviceGet*`, and Primary Context Management: `cuDevicePrimaryCtx*`.

use core::ffi::{c_char, c_int, c_uint};

use crate::abi::{CUcontext, CUdevice, CUdevprop, CUuuid, Error, Result, conv};
use crate::device::{self, attributes, context, pci, properties};
use crate::driver;

/// Bytes that a PCI bus id and its NUL take: `0000:00:00.0`.
const PCI_ID_SIZE: c_int = 13;

/// Writes a device's PCI id. A buffer that is too small is [`Error::INVALID_VALUE`], and gets what fits (recorded).
pub(in crate::api) fn pci_bus_id(text: *mut c_char, len: c_int, device: CUdevice) -> Result<()> {
    let id = pci::text(device::get(device)?);
    conv::write_string(text, usize::try_from(len).unwrap_or(0), &id)?;
    if len < PCI_ID_SIZE {
        Err(Error::INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// The device of a PCI id.
///
/// # Safety
/// `text`, when not NULL, must end with a NUL.
pub(in crate::api) unsafe fn by_pci_bus_id(text: *const c_char) -> Result<c_int> {
    // SAFETY: the caller's promise.
    let address = pci::parse(unsafe { conv::bytes(text) }?).ok_or(Error::INVALID_VALUE)?;
    let device = device::all()?.iter().find(|device| pci::address(device) == address);
    device.map(|device| device.ordinal).ok_or(Error::INVALID_DEVICE)
}

/// `cuFlushGPUDirectRDMAWrites` for the current context: what network cards wrote to GPUs is seen by all that runs from now on.
/// Every scope is the same: what is flushed is the way to the memory, behind which all readers are.
///
/// # Errors
/// INVALID_VALUE for another target and for unknown scopes, NOT_SUPPORTED where attribute 117 says that there is no flush.
pub(in crate::api) fn flush_rdma_writes(target: c_int, scope: c_int) -> Result<()> {
    /// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX`.
    const CURRENT: c_int = 0;
    /// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER`, `..._TO_ALL_DEVICES`.
    const SCOPES: [c_int; 2] = [100, 200];
    let context = context::current()?;
    if target != CURRENT || !SCOPES.contains(&scope) {
        return Err(Error::INVALID_VALUE);
    }
    let register = context.device.agent.hdp_flush.ok_or(Error::NOT_SUPPORTED)?;
    register.flush();
    Ok(())
}

fn primary_flags(device: CUdevice, flags: c_uint) -> Result<()> {
    device::get(device)?.primary_context().set_flags(flags)
}

fn reset(device: CUdevice) -> Result<()> {
    context::reset_primary(device::get(device)?, false);
    Ok(())
}

driver! {
    /// CUDA Driver API, Device Management: `cuDeviceGetCount`.
    fn cuDeviceGetCount(count: *mut c_int) {
        conv::write(count, device::count()? as c_int)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGet`. A `CUdevice` is its ordinal.
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) {
        conv::write(device, device::get(ordinal)?.ordinal)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetName`. A name that does not fit is cut. Length 0, with which NVIDIA's
    /// driver overruns the buffer, is refused; a negative one writes nothing (recorded).
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice) {
        let device = device::get(device)?;
        if len == 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write_string(name, usize::try_from(len).unwrap_or(0), &device.name)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetUuid`.
    fn cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice) {
        conv::write(uuid, properties::uuid(device::get(device)?))
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetUuid_v2`; the same, as there are no partitions.
    fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice) {
        conv::write(uuid, properties::uuid(device::get(device)?))
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetLuid`; Windows only.
    fn cuDeviceGetLuid(_luid: *mut c_char, _node_mask: *mut c_uint, device: CUdevice) {
        device::get(device)?;
        Err(Error::NOT_SUPPORTED)
    }

    /// CUDA Driver API, Device Management: `cuDeviceTotalMem`.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) {
        conv::write(bytes, device::get(device)?.total_memory() as usize)
    }

    /// CUDA Driver API, Device Management: `cuDeviceTotalMem` of CUDA 2, which counts to 4 GiB.
    fn cuDeviceTotalMem(bytes: *mut c_uint, device: CUdevice) {
        conv::write(bytes, c_uint::try_from(device::get(device)?.total_memory()).unwrap_or(c_uint::MAX))
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetAttribute`.
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice) {
        conv::write(value, attributes::get(device::get(device)?, attribute)?)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetExecAffinitySupport`; none is supported.
    fn cuDeviceGetExecAffinitySupport(supported: *mut c_int, _kind: c_int, device: CUdevice) {
        device::get(device)?;
        conv::write(supported, 0)
    }

    /// CUDA Driver API, Device Management: `cuFlushGPUDirectRDMAWrites`.
    fn cuFlushGPUDirectRDMAWrites(target: c_int, scope: c_int) {
        flush_rdma_writes(target, scope)
    }

    /// CUDA Driver API, Device Management (deprecated): `cuDeviceGetProperties`.
    fn cuDeviceGetProperties(properties: *mut CUdevprop, device: CUdevice) {
        conv::write(properties, properties::driver(device::get(device)?)?)
    }

    /// CUDA Driver API, Device Management (deprecated): `cuDeviceComputeCapability`.
    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: CUdevice) {
        device::get(device)?;
        conv::write(major, attributes::compute_capability().0)?;
        conv::write(minor, attributes::compute_capability().1)
    }

    /// CUDA Driver API, Unified Addressing: `cuDeviceGetPCIBusId`.
    fn cuDeviceGetPCIBusId(text: *mut c_char, len: c_int, device: CUdevice) {
        pci_bus_id(text, len, device)
    }

    /// CUDA Driver API, Unified Addressing: `cuDeviceGetByPCIBusId`.
    fn cuDeviceGetByPCIBusId(device: *mut CUdevice, text: *const c_char) {
        device::initialized()?;
        if device.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the entry point's contract.
        conv::write(device, unsafe { by_pci_bus_id(text) }?)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxRetain`.
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) {
        device::initialized()?;
        if context.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(context, context::retain_primary(device::get(device)?)?.handle())
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxRelease`.
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) {
        context::release_primary(device::get(device)?)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxRelease` of CUDA 7.
    fn cuDevicePrimaryCtxRelease(device: CUdevice) {
        context::release_primary(device::get(device)?)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxReset`.
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice) {
        reset(device)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxReset` of CUDA 7.
    fn cuDevicePrimaryCtxReset(device: CUdevice) {
        reset(device)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxSetFlags`.
    fn cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint) {
        primary_flags(device, flags)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxSetFlags` of CUDA 7.
    fn cuDevicePrimaryCtxSetFlags(device: CUdevice, flags: c_uint) {
        primary_flags(device, flags)
    }

    /// CUDA Driver API, Primary Context Management: `cuDevicePrimaryCtxGetState`.
    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        let context = device::get(device)?.primary_context();
        if flags.is_null() || active.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(flags, context.flags())?;
        conv::write(active, c_int::from(context.is_active()))
    }
}
