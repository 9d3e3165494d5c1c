//! Memory Management: CUDA arrays and mipmapped arrays.

use core::ffi::{c_int, c_uint};

use crate::abi::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUDA_ARRAY3D_DESCRIPTOR,
    CUarray, CUarray_format, CUdevice, CUmipmappedArray, Error, Result, conv,
};
use crate::device::{self, context};
use crate::driver;
use crate::memory::array::{self, Array, Format};

/// Makes an array of the description and gives its handle.
fn create(handle: *mut CUarray, desc: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<()> {
    let context = context::current()?;
    if handle.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let format = Format::new(desc.Format, desc.NumChannels)?;
    let created = array::create(context, format, extents(desc), desc.Flags)?;
    conv::write(handle, created as CUarray)
}

fn extents(desc: &CUDA_ARRAY3D_DESCRIPTOR) -> [u64; 3] {
    [desc.Width, desc.Height, desc.Depth].map(|extent| extent as u64)
}

/// An array as the driver describes it.
fn describe(array: &Array) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: array.shape.width as usize,
        Height: array.shape.height as usize,
        Depth: array.shape.depth as usize,
        Format: array.format.name,
        NumChannels: array.format.channels,
        Flags: array.shape.flags,
    }
}

/// What is asked of arrays without memory of their own, sparse, deferred or planar, which there are none of.
fn only_of_others(known: bool) -> Result<()> {
    device::initialized()?;
    Err(if known {
        Error::INVALID_VALUE
    } else {
        Error::INVALID_RESOURCE_HANDLE
    })
}

/// The most elements of a texture of linear memory: 2^30, and 4 GiB of them (recorded).
pub(in crate::api) fn linear_width(format: &Format) -> usize {
    (1 << 30).min((1 << 32) / format.element_size() as usize)
}

driver! {
    /// CUDA Driver API, Memory Management: `cuArrayCreate`.
    fn cuArrayCreate_v2(handle: *mut CUarray, desc: *const CUDA_ARRAY_DESCRIPTOR) {
        let desc = conv::read(desc)?;
        create(handle, &CUDA_ARRAY3D_DESCRIPTOR {
            Width: desc.Width,
            Height: desc.Height,
            Depth: 0,
            Format: desc.Format,
            NumChannels: desc.NumChannels,
            Flags: 0,
        })
    }

    /// CUDA Driver API, Memory Management: `cuArray3DCreate`.
    fn cuArray3DCreate_v2(handle: *mut CUarray, desc: *const CUDA_ARRAY3D_DESCRIPTOR) {
        create(handle, &conv::read(desc)?)
    }

    /// CUDA Driver API, Memory Management: `cuArrayGetDescriptor`. Depth and flags are left out.
    fn cuArrayGetDescriptor_v2(desc: *mut CUDA_ARRAY_DESCRIPTOR, handle: CUarray) {
        device::initialized()?;
        let array = describe(&*array::get(handle as u64)?);
        conv::write(desc, CUDA_ARRAY_DESCRIPTOR {
            Width: array.Width,
            Height: array.Height,
            Format: array.Format,
            NumChannels: array.NumChannels,
        })
    }

    /// CUDA Driver API, Memory Management: `cuArray3DGetDescriptor`.
    fn cuArray3DGetDescriptor_v2(desc: *mut CUDA_ARRAY3D_DESCRIPTOR, handle: CUarray) {
        device::initialized()?;
        conv::write(desc, describe(&*array::get(handle as u64)?))
    }

    /// CUDA Driver API, Memory Management: `cuArrayDestroy`.
    fn cuArrayDestroy(handle: CUarray) {
        device::initialized()?;
        array::destroy(handle as u64)
    }

    /// CUDA Driver API, Memory Management: `cuArrayGetMemoryRequirements`, of arrays with deferred mapping.
    fn cuArrayGetMemoryRequirements(
        _requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, _handle: CUarray, _device: CUdevice,
    ) {
        only_of_others(true)
    }

    /// CUDA Driver API, Memory Management: `cuArrayGetSparseProperties`, of sparse arrays.
    fn cuArrayGetSparseProperties(_properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, _handle: CUarray) {
        only_of_others(true)
    }

    /// CUDA Driver API, Memory Management: `cuArrayGetPlane`, of arrays with a planar format.
    fn cuArrayGetPlane(_plane: *mut CUarray, handle: CUarray, _index: c_uint) {
        only_of_others(!handle.is_null())
    }

    /// CUDA Driver API, Memory Management: `cuMipmappedArrayCreate`.
    fn cuMipmappedArrayCreate(
        handle: *mut CUmipmappedArray, desc: *const CUDA_ARRAY3D_DESCRIPTOR, levels: c_uint,
    ) {
        let (context, desc) = (context::current()?, conv::read(desc)?);
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let format = Format::new(desc.Format, desc.NumChannels)?;
        let created = array::create_mipmapped(context, format, extents(&desc), desc.Flags, levels)?;
        conv::write(handle, created as CUmipmappedArray)
    }

    /// CUDA Driver API, Memory Management: `cuMipmappedArrayGetLevel`.
    fn cuMipmappedArrayGetLevel(level: *mut CUarray, handle: CUmipmappedArray, index: c_uint) {
        device::initialized()?;
        conv::write(level, array::mipmapped(handle as u64)?.level(index)? as CUarray)
    }

    /// CUDA Driver API, Memory Management: `cuMipmappedArrayDestroy`.
    fn cuMipmappedArrayDestroy(handle: CUmipmappedArray) {
        device::initialized()?;
        array::destroy_mipmapped(handle as u64)
    }

    /// CUDA Driver API, Memory Management: `cuMipmappedArrayGetMemoryRequirements`, as for arrays.
    fn cuMipmappedArrayGetMemoryRequirements(
        _requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, _handle: CUmipmappedArray, _device: CUdevice,
    ) {
        only_of_others(true)
    }

    /// CUDA Driver API, Memory Management: `cuMipmappedArrayGetSparseProperties`, as for arrays.
    fn cuMipmappedArrayGetSparseProperties(
        _properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, _handle: CUmipmappedArray,
    ) {
        only_of_others(true)
    }

    /// CUDA Driver API, Device Management: `cuDeviceGetTexture1DLinearMaxWidth`.
    fn cuDeviceGetTexture1DLinearMaxWidth(
        width: *mut usize, format: CUarray_format, channels: c_uint, device: c_int,
    ) {
        device::initialized()?;
        device::get(device)?;
        conv::write(width, linear_width(&Format::new(format, channels)?))
    }
}
