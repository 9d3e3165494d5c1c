//! Memory Management: allocation of device and host memory.

use core::ffi::{c_uint, c_void};

use crate::abi::{Error, Result, conv, cudaExtent, cudaPitchedPtr};
use crate::device::context;
use crate::{memory, runtime};

use super::hooked;

/// The element size that every pitch suits.
const ELEMENT_SIZE: c_uint = 4;

/// Writes NULL, so that a failure leaves it (recorded), then what `allocate` gives unless `empty`.
fn allocate(to: *mut *mut c_void, empty: bool, allocate: impl FnOnce(&mut u64) -> Result<()>) -> Result<()> {
    conv::write(to, core::ptr::null_mut())?;
    let mut address = 0;
    if !empty {
        allocate(&mut address)?;
    }
    conv::write(to, core::ptr::with_exposed_provenance_mut(address as usize))
}

/// Allocates rows of device memory; gives the pitch.
fn allocate_pitched(address: &mut u64, width: usize, rows: usize) -> Result<usize> {
    let mut pitch = 0;
    hooked::cuMemAllocPitch_v2(address, &raw mut pitch, width, rows, ELEMENT_SIZE)?;
    Ok(pitch)
}

fn allocate_host(to: *mut *mut c_void, size: usize, flags: c_uint) -> Result<()> {
    let context = context::runtime_current()?;
    allocate(to, size == 0, |address| {
        *address = memory::host::allocate(context, size, flags)?.base;
        Ok(())
    })
}

runtime! {
    /// CUDA Runtime API, Memory Management: `cudaMalloc`. Size 0 gives NULL.
    fn cudaMalloc(address: *mut *mut c_void, size: usize) {
        context::runtime_current()?;
        allocate(address, size == 0, |block| hooked::cuMemAlloc_v2(block, size))
    }

    /// CUDA Runtime API, Memory Management: `cudaMallocManaged`. Size 0 gives NULL.
    fn cudaMallocManaged(address: *mut *mut c_void, size: usize, flags: c_uint) {
        context::runtime_current()?;
        if address.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        memory::managed::check_flags(flags)?;
        allocate(address, size == 0, |block| hooked::cuMemAllocManaged(block, size, flags))
    }

    /// CUDA Runtime API, Memory Management: `cudaFree`. NULL is fine, and activates the context.
    fn cudaFree(address: *mut c_void) {
        context::runtime_current()?;
        if address.is_null() { Ok(()) } else { hooked::cuMemFree_v2(address.addr() as u64) }
    }

    /// CUDA Runtime API, Memory Management: `cudaMallocPitch`. An empty area gives NULL and pitch 0.
    fn cudaMallocPitch(address: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        context::runtime_current()?;
        if address.is_null() || pitch.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let mut row = 0;
        let result = allocate(address, width == 0 || height == 0, |block| {
            row = allocate_pitched(block, width, height)?;
            Ok(())
        });
        result.and_then(|()| conv::write(pitch, row))
    }

    /// CUDA Runtime API, Memory Management: `cudaMalloc3D`. An empty volume gives NULL and pitch 0.
    fn cudaMalloc3D(result: *mut cudaPitchedPtr, extent: cudaExtent) {
        context::runtime_current()?;
        let cudaExtent { width, height, depth } = extent;
        if result.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let rows = height.checked_mul(depth).ok_or(Error::INVALID_VALUE)?;
        let mut volume = cudaPitchedPtr { ptr: core::ptr::null_mut(), pitch: 0, xsize: width, ysize: height };
        if width != 0 && rows != 0 {
            let mut block = 0;
            volume.pitch = allocate_pitched(&mut block, width, rows)?;
            volume.ptr = core::ptr::with_exposed_provenance_mut(block as usize);
        }
        conv::write(result, volume)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemGetInfo`. Either result may be NULL.
    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        let device = context::runtime_current()?.device;
        conv::write_if(free, device.free_memory() as usize);
        conv::write_if(total, device.total_memory() as usize);
        Ok(())
    }

    /// CUDA Runtime API, Memory Management: `cudaMallocHost`.
    fn cudaMallocHost(address: *mut *mut c_void, size: usize) {
        allocate_host(address, size, 0)
    }

    /// CUDA Runtime API, Memory Management: `cudaHostAlloc`.
    fn cudaHostAlloc(address: *mut *mut c_void, size: usize, flags: c_uint) {
        allocate_host(address, size, flags)
    }

    /// CUDA Runtime API, Memory Management: `cudaFreeHost`. NULL is fine.
    fn cudaFreeHost(address: *mut c_void) {
        context::runtime_current()?;
        if address.is_null() { Ok(()) } else { hooked::cuMemFreeHost(address) }
    }

    /// CUDA Runtime API, Memory Management: `cudaHostRegister`.
    fn cudaHostRegister(address: *mut c_void, size: usize, flags: c_uint) {
        let context = context::runtime_current()?;
        // SAFETY: the entry point's contract.
        unsafe { memory::host::register(context, address.expose_provenance() as u64, size, flags) }
    }

    /// CUDA Runtime API, Memory Management: `cudaHostUnregister`.
    fn cudaHostUnregister(address: *mut c_void) {
        context::runtime_current()?;
        memory::host::unregister(address.addr() as u64)
    }

    /// CUDA Runtime API, Memory Management: `cudaHostGetDevicePointer`. There are no flags yet.
    fn cudaHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint) {
        context::runtime_current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let address = host.addr() as u64;
        let there = memory::host::pinned(address)?.device_address(address);
        conv::write(device, core::ptr::with_exposed_provenance_mut(there as usize))
    }

    /// CUDA Runtime API, Memory Management: `cudaHostGetFlags`.
    fn cudaHostGetFlags(flags: *mut c_uint, host: *mut c_void) {
        context::runtime_current()?;
        conv::write(flags, memory::host::flags(host.addr() as u64)?)
    }
}
