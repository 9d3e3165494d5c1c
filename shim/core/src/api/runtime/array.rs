//! Memory Management: CUDA arrays and mipmapped arrays.

use core::ffi::{c_int, c_uint};

use crate::abi::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUarray, CUmipmappedArray, Error, Result, conv,
    cudaArray_t, cudaChannelFormatDesc, cudaExtent, cudaMipmappedArray_t,
};
use crate::api::driver;
use crate::device::{self, Context, context};
use crate::memory::array::{self, Format};
use crate::runtime;

fn extents(extent: &cudaExtent) -> [u64; 3] {
    [extent.width, extent.height, extent.depth].map(|extent| extent as u64)
}

/// Writes NULL, so that a failure leaves it (recorded), then the handle that `make` gives.
fn create<T>(
    to: *mut *mut T,
    desc: *const cudaChannelFormatDesc,
    make: impl FnOnce(&'static Context, Format) -> Result<u64>,
) -> Result<()> {
    let context = context::runtime_current()?;
    conv::write(to, core::ptr::null_mut())?;
    let format = Format::from_runtime(&conv::read(desc)?)?;
    conv::write(to, make(context, format)? as *mut T)
}

runtime! {
    /// CUDA Runtime API, Memory Management: `cudaMallocArray`.
    fn cudaMallocArray(
        array: *mut cudaArray_t, desc: *const cudaChannelFormatDesc, width: usize, height: usize, flags: c_uint,
    ) {
        create(array, desc, |context, format| array::create(context, format, [width as u64, height as u64, 0], flags))
    }

    /// CUDA Runtime API, Memory Management: `cudaMalloc3DArray`.
    fn cudaMalloc3DArray(
        array: *mut cudaArray_t, desc: *const cudaChannelFormatDesc, extent: cudaExtent, flags: c_uint,
    ) {
        create(array, desc, |context, format| array::create(context, format, extents(&extent), flags))
    }

    /// CUDA Runtime API, Memory Management: `cudaFreeArray`. NULL is fine.
    fn cudaFreeArray(array: cudaArray_t) {
        context::runtime_current()?;
        if array.is_null() { Ok(()) } else { array::destroy(array as u64) }
    }

    /// CUDA Runtime API, Memory Management: `cudaArrayGetInfo`. Every result may be NULL.
    fn cudaArrayGetInfo(
        desc: *mut cudaChannelFormatDesc, extent: *mut cudaExtent, flags: *mut c_uint, array: cudaArray_t,
    ) {
        context::runtime_current()?;
        let array = array::get(array as u64)?;
        conv::write_if(desc, array.format.runtime());
        conv::write_if(extent, cudaExtent {
            width: array.shape.width as usize,
            height: array.shape.height as usize,
            depth: array.shape.depth as usize,
        });
        conv::write_if(flags, array.shape.flags);
        Ok(())
    }

    /// CUDA Runtime API, Texture Object Management: `cudaGetChannelDesc`.
    fn cudaGetChannelDesc(desc: *mut cudaChannelFormatDesc, array: cudaArray_t) {
        context::runtime_current()?;
        conv::write(desc, array::get(array as u64)?.format.runtime())
    }

    /// CUDA Runtime API, Memory Management: `cudaMallocMipmappedArray`.
    fn cudaMallocMipmappedArray(
        mipmapped: *mut cudaMipmappedArray_t, desc: *const cudaChannelFormatDesc, extent: cudaExtent, levels: c_uint,
        flags: c_uint,
    ) {
        create(mipmapped, desc, |context, format| {
            array::create_mipmapped(context, format, extents(&extent), flags, levels)
        })
    }

    /// CUDA Runtime API, Memory Management: `cudaFreeMipmappedArray`. NULL is fine.
    fn cudaFreeMipmappedArray(mipmapped: cudaMipmappedArray_t) {
        context::runtime_current()?;
        if mipmapped.is_null() { Ok(()) } else { array::destroy_mipmapped(mipmapped as u64) }
    }

    /// CUDA Runtime API, Memory Management: `cudaGetMipmappedArrayLevel`.
    fn cudaGetMipmappedArrayLevel(array: *mut cudaArray_t, mipmapped: cudaMipmappedArray_t, level: c_uint) {
        context::runtime_current()?;
        conv::write(array, array::mipmapped(mipmapped as u64)?.level(level)? as cudaArray_t)
    }

    /// CUDA Runtime API, Memory Management: `cudaArrayGetMemoryRequirements`, of arrays with deferred mapping.
    fn cudaArrayGetMemoryRequirements(
        requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, array: cudaArray_t, device: c_int,
    ) {
        device::init()?;
        // SAFETY: the entry point's contract.
        conv::result(unsafe { driver::cuArrayGetMemoryRequirements(requirements, array as CUarray, device) })
    }

    /// CUDA Runtime API, Memory Management: `cudaArrayGetSparseProperties`, of sparse arrays.
    fn cudaArrayGetSparseProperties(properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, array: cudaArray_t) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuArrayGetSparseProperties(properties, array as CUarray) })
    }

    /// CUDA Runtime API, Memory Management: `cudaArrayGetPlane`, of arrays with a planar format.
    fn cudaArrayGetPlane(plane: *mut cudaArray_t, array: cudaArray_t, index: c_uint) {
        device::init()?;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuArrayGetPlane(plane.cast(), array as CUarray, index) })
    }

    /// CUDA Runtime API, Memory Management: `cudaMipmappedArrayGetMemoryRequirements`, as for arrays.
    fn cudaMipmappedArrayGetMemoryRequirements(
        requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, mipmapped: cudaMipmappedArray_t, device: c_int,
    ) {
        device::init()?;
        let mipmapped = mipmapped as CUmipmappedArray;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuMipmappedArrayGetMemoryRequirements(requirements, mipmapped, device) })
    }

    /// CUDA Runtime API, Memory Management: `cudaMipmappedArrayGetSparseProperties`, as for arrays.
    fn cudaMipmappedArrayGetSparseProperties(
        properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, mipmapped: cudaMipmappedArray_t,
    ) {
        device::init()?;
        let mipmapped = mipmapped as CUmipmappedArray;
        // SAFETY: as above.
        conv::result(unsafe { driver::cuMipmappedArrayGetSparseProperties(properties, mipmapped) })
    }

    /// CUDA Runtime API, Texture Object Management: `cudaDeviceGetTexture1DLinearMaxWidth`.
    fn cudaDeviceGetTexture1DLinearMaxWidth(width: *mut usize, desc: *const cudaChannelFormatDesc, device: c_int) {
        device::init()?;
        device::get(device)?;
        let format = Format::from_runtime(&conv::read(desc)?)?;
        if width.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(width, driver::linear_width(&format))
    }
}
