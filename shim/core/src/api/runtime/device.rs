//! Device Management: `cudaDevice*`, `cudaSetDevice`, `cudaGetDeviceProperties`, `cudaIpc*`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::mem::offset_of;

use crate::abi::{CUlimit, Error, Result, conv, cudaDeviceProp, cudaIpcMemHandle_t};
use crate::api::driver::{by_pci_bus_id, export_memory, flush_rdma_writes, open_memory, pci_bus_id, wait};
use crate::device::{self, Device, attributes, context, properties};
use crate::memory::ipc;
use crate::stream::GREATEST_PRIORITY;
use crate::{fork, runtime};

/// `cudaInitDeviceFlagsAreValid`.
const FLAGS_ARE_VALID: c_uint = 1;

/// The device of a number, for calls that need no context.
fn get(device: c_int) -> Result<&'static Device> {
    device::init()?;
    device::get(device)
}

fn synchronize() -> Result<()> {
    wait(context::runtime_current()?)
}

fn reset() -> Result<()> {
    context::reset_primary(get(context::runtime_device())?, true);
    Ok(())
}

fn limit(value: *mut usize, limit: CUlimit) -> Result<()> {
    let context = context::runtime_current()?;
    conv::write(value, context.settings().limit(limit, context.device)?)
}

fn set_limit(limit: CUlimit, value: usize) -> Result<()> {
    context::runtime_current()?.settings().set_limit(limit, value)
}

fn cache_config(config: *mut c_int) -> Result<()> {
    conv::write(config, context::runtime_current()?.settings().cache_config)
}

fn set_cache_config(config: c_int) -> Result<()> {
    context::runtime_current()?.settings().set_cache_config(config)
}

runtime! {
    /// CUDA Runtime API, Device Management: `cudaGetDeviceCount`.
    fn cudaGetDeviceCount(count: *mut c_int) {
        if count.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        device::init()?;
        fork::note_count_asked();
        conv::write(count, device::count()? as c_int)
    }

    /// CUDA Runtime API, Device Management: `cudaGetDevice`.
    fn cudaGetDevice(device: *mut c_int) {
        device::init()?;
        conv::write(device, context::runtime_device())
    }

    /// CUDA Runtime API, Device Management: `cudaSetDevice`. Activates the device's primary context.
    fn cudaSetDevice(device: c_int) {
        context::set_runtime_device(get(device)?)
    }

    /// CUDA Runtime API, Device Management: `cudaInitDevice`. Activates the primary context without making it current.
    fn cudaInitDevice(device: c_int, device_flags: c_uint, flags: c_uint) {
        let device = get(device)?;
        match flags {
            0 => {}
            FLAGS_ARE_VALID => device.primary_context().set_flags(device_flags)?,
            _ => return Err(Error::INVALID_VALUE),
        }
        context::runtime_primary(device).map(drop)
    }

    /// CUDA Runtime API, Device Management: `cudaSetValidDevices`: threads that choose no device use the first of the list.
    fn cudaSetValidDevices(devices: *mut c_int, len: c_int) {
        device::init()?;
        let len = usize::try_from(len).map_err(|_| Error::INVALID_VALUE)?;
        // SAFETY: the entry point's contract.
        let devices = unsafe { conv::slice(devices.cast_const(), len) }?;
        for &device in devices {
            device::get(device)?;
        }
        context::set_default_device(devices.first().copied().unwrap_or(0));
        Ok(())
    }

    /// CUDA Runtime API, Device Management: `cudaChooseDevice`: the first device with the wanted capability and memory, else the
    /// first.
    fn cudaChooseDevice(device: *mut c_int, wanted: *const cudaDeviceProp) {
        device::init()?;
        let wanted = conv::read(wanted)?;
        let fits = |device: &&Device| {
            (wanted.major, wanted.minor) <= attributes::compute_capability()
                && wanted.totalGlobalMem as u64 <= device.total_memory()
        };
        conv::write(device, device::all()?.iter().find(fits).map_or(0, |device| device.ordinal))
    }

    /// CUDA Runtime API, Device Management: `cudaGetDeviceProperties` since CUDA 12.
    fn cudaGetDeviceProperties_v2(properties: *mut cudaDeviceProp, device: c_int) {
        device::init()?;
        if properties.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(properties, properties::runtime(device::get(device)?)?)
    }

    /// CUDA Runtime API, Device Management: `cudaGetDeviceProperties` of CUDA 11, whose structure ends earlier.
    fn cudaGetDeviceProperties(properties: *mut c_void, device: c_int) {
        const CUDA_11: usize = offset_of!(cudaDeviceProp, hostRegisterSupported);
        device::init()?;
        if properties.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let whole = properties::runtime(device::get(device)?)?;
        // SAFETY: the beginning of the structure is the same; the entry point's contract is that the older one has room.
        unsafe { core::ptr::copy_nonoverlapping((&raw const whole).cast::<u8>(), properties.cast::<u8>(), CUDA_11) };
        Ok(())
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetAttribute`. Numbers are the driver's.
    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        conv::write(value, attributes::get(get(device)?, attribute)?)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetPCIBusId`.
    fn cudaDeviceGetPCIBusId(text: *mut c_char, len: c_int, device: c_int) {
        device::init()?;
        pci_bus_id(text, len, device)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetByPCIBusId`.
    fn cudaDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char) {
        device::init()?;
        if device.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the entry point's contract.
        conv::write(device, unsafe { by_pci_bus_id(text) }?)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceSynchronize`.
    fn cudaDeviceSynchronize() {
        synchronize()
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceReset`. The context stays current and comes back at its next use.
    fn cudaDeviceReset() {
        reset()
    }

    /// CUDA Runtime API, Device Management: `cudaGetDeviceFlags`. Mapping host memory is always on.
    fn cudaGetDeviceFlags(flags: *mut c_uint) {
        let device = get(context::runtime_device())?;
        let context = context::peek().unwrap_or_else(|| device.primary_context());
        conv::write(flags, context.flags() | context::MAP_HOST)
    }

    /// CUDA Runtime API, Device Management: `cudaSetDeviceFlags`.
    fn cudaSetDeviceFlags(flags: c_uint) {
        context::runtime_current()?.set_flags(flags)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetStreamPriorityRange`. Either result may be NULL.
    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        context::runtime_current()?;
        conv::write_if(least, 0);
        conv::write_if(greatest, GREATEST_PRIORITY);
        Ok(())
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetLimit`.
    fn cudaDeviceGetLimit(value: *mut usize, which: CUlimit) {
        limit(value, which)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceSetLimit`.
    fn cudaDeviceSetLimit(which: CUlimit, value: usize) {
        set_limit(which, value)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceGetCacheConfig`.
    fn cudaDeviceGetCacheConfig(config: *mut c_int) {
        cache_config(config)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceSetCacheConfig`.
    fn cudaDeviceSetCacheConfig(config: c_int) {
        set_cache_config(config)
    }

    /// CUDA Runtime API, Device Management (deprecated): `cudaDeviceGetSharedMemConfig`; always four-byte banks (recorded).
    fn cudaDeviceGetSharedMemConfig(config: *mut c_int) {
        context::runtime_current()?;
        conv::write(config, 1)
    }

    /// CUDA Runtime API, Device Management (deprecated): `cudaDeviceSetSharedMemConfig`; without effect (recorded).
    fn cudaDeviceSetSharedMemConfig(_config: c_int) {
        context::runtime_current().map(drop)
    }

    /// CUDA Runtime API, Device Management: `cudaCtxResetPersistingL2Cache`; no lines persist.
    fn cudaCtxResetPersistingL2Cache() {
        context::runtime_current().map(drop)
    }

    /// CUDA Runtime API, Device Management: `cudaIpcGetMemHandle`.
    fn cudaIpcGetMemHandle(handle: *mut cudaIpcMemHandle_t, address: *mut c_void) {
        context::runtime_current()?;
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(handle, cudaIpcMemHandle_t { reserved: export_memory(address.addr() as u64)? })
    }

    /// CUDA Runtime API, Device Management: `cudaIpcOpenMemHandle`.
    fn cudaIpcOpenMemHandle(address: *mut *mut c_void, handle: cudaIpcMemHandle_t, flags: c_uint) {
        let context = context::runtime_current()?;
        if address.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let base = open_memory(context, &handle.reserved, flags)?;
        conv::write(address, core::ptr::with_exposed_provenance_mut(base as usize))
    }

    /// CUDA Runtime API, Device Management: `cudaIpcCloseMemHandle`.
    fn cudaIpcCloseMemHandle(address: *mut c_void) {
        context::runtime_current()?;
        ipc::close(address.addr() as u64)
    }

    /// CUDA Runtime API, Device Management: `cudaDeviceFlushGPUDirectRDMAWrites`.
    fn cudaDeviceFlushGPUDirectRDMAWrites(target: c_int, scope: c_int) {
        context::runtime_current()?;
        flush_rdma_writes(target, scope)
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadSynchronize`.
    fn cudaThreadSynchronize() {
        synchronize()
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadExit`.
    fn cudaThreadExit() {
        reset()
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadGetLimit`.
    fn cudaThreadGetLimit(value: *mut usize, which: CUlimit) {
        limit(value, which)
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadSetLimit`.
    fn cudaThreadSetLimit(which: CUlimit, value: usize) {
        set_limit(which, value)
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadGetCacheConfig`.
    fn cudaThreadGetCacheConfig(config: *mut c_int) {
        cache_config(config)
    }

    /// CUDA Runtime API, Thread Management (deprecated): `cudaThreadSetCacheConfig`.
    fn cudaThreadSetCacheConfig(config: c_int) {
        set_cache_config(config)
    }
}
