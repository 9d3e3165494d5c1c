//! Memory Management: device memory, address ranges.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::os::fd::IntoRawFd;

use crate::abi::{CUdeviceptr, Error, conv};
use crate::device::context;
use crate::{driver, memory};

/// Element sizes for which `cuMemAllocPitch` can make rows aligned (recorded).
const ELEMENT_SIZES: [c_uint; 3] = [4, 8, 16];

driver! {
    /// CUDA Driver API, Memory Management: `cuMemGetInfo`. Either result may be NULL.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let device = context::current()?.device;
        conv::write_if(free, device.free_memory() as usize);
        conv::write_if(total, device.total_memory() as usize);
        Ok(())
    }

    /// CUDA Driver API, Memory Management: `cuMemAlloc`. Size 0 is an error here, and writes 0.
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, size: usize) {
        let context = context::current()?;
        conv::write(address, 0)?;
        if size == 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(address, memory::allocate(context, size)?.base)
    }

    /// CUDA Driver API, Memory Management: `cuMemAllocPitch`.
    fn cuMemAllocPitch_v2(
        address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element_size: c_uint,
    ) {
        let context = context::current()?;
        if address.is_null() || pitch.is_null() || width == 0 || height == 0 || !ELEMENT_SIZES.contains(&element_size) {
            return Err(Error::INVALID_VALUE);
        }
        let (block, row) = memory::allocate_pitched(context, width, height)?;
        conv::write(address, block.base)?;
        conv::write(pitch, row)
    }

    /// CUDA Driver API, Memory Management: `cuMemAllocManaged`.
    fn cuMemAllocManaged(address: *mut CUdeviceptr, size: usize, flags: c_uint) {
        let context = context::current()?;
        if address.is_null() || size == 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(address, memory::managed::allocate(context, size, flags)?.base)
    }

    /// CUDA Driver API, Memory Management: `cuMemFree`. Address 0 is fine.
    fn cuMemFree_v2(address: CUdeviceptr) {
        context::usable()?;
        if address == 0 { Ok(()) } else { memory::free(address) }
    }

    /// CUDA Driver API, Memory Management: `cuMemGetAddressRange`. Either result may be NULL; with both NULL, any address is fine.
    fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, size: *mut usize, address: CUdeviceptr) {
        context::current()?;
        if base.is_null() && size.is_null() {
            return Ok(());
        }
        let range = memory::address_range(address);
        let (start, length) = range.unwrap_or_default();
        conv::write_if(base, start);
        conv::write_if(size, length as usize);
        range.map(drop)
    }

    /// CUDA Driver API, Memory Management: `cuMemGetHandleForAddressRange`. Only dma-bufs, and no PCIe mapping on request.
    fn cuMemGetHandleForAddressRange(
        handle: *mut c_void, address: CUdeviceptr, size: usize, kind: c_int, flags: c_ulonglong,
    ) {
        context::current()?;
        // `CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE`; callers repeat without it.
        const PCIE: c_ulonglong = 1;
        if handle.is_null() || kind != 1 {
            return Err(Error::INVALID_VALUE);
        }
        // Whatever else is asked for (recorded).
        if flags & PCIE != 0 {
            return Err(Error::NOT_SUPPORTED);
        }
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let fd = memory::dma_buf::export(address, size)?;
        conv::write(handle.cast::<c_int>(), fd.into_raw_fd())
    }
}
