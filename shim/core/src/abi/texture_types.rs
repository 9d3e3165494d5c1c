//! Texture and surface objects: structures and enumerations of `cuda.h`, `driver_types.h` and `texture_types.h`.
//!
//! Layouts are those of CUDA 12.9 on 64-bit Linux; `layout.rs` asserts them at compile time.

// The manual documents each field under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::*;

use super::driver_enums::*;
use super::handles::*;
use super::runtime_types::cudaChannelFormatDesc;
use super::{Plain, c_enum};

c_enum! {
    /// What becomes of coordinates outside.
    CUaddress_mode {
        WRAP = 0,
        CLAMP = 1,
        MIRROR = 2,
        BORDER = 3,
    }
}

c_enum! {
    /// Whether the nearest element is read, or those around are mixed.
    CUfilter_mode {
        POINT = 0,
        LINEAR = 1,
    }
}

c_enum! {
    /// Whether integers are read as they are or as fractions.
    cudaTextureReadMode {
        ELEMENT_TYPE = 0,
        NORMALIZED_FLOAT = 1,
    }
}

/// Flag of [`CUDA_TEXTURE_DESC`]: integers are read as they are.
pub const CU_TRSF_READ_AS_INTEGER: u32 = 0x01;
/// Coordinates go from 0 to 1.
pub const CU_TRSF_NORMALIZED_COORDINATES: u32 = 0x02;
/// Elements are sRGB.
pub const CU_TRSF_SRGB: u32 = 0x10;
/// No shortcuts between levels.
pub const CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: u32 = 0x20;
/// Filters reach over the edges of a cube.
pub const CU_TRSF_SEAMLESS_CUBEMAP: u32 = 0x40;

/// A run of elements in [`CUDA_RESOURCE_DESC`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_DESC_linear {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: c_uint,
    pub sizeInBytes: usize,
}

/// Rows of elements in [`CUDA_RESOURCE_DESC`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_DESC_pitch2D {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: c_uint,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

/// The part `res` of [`CUDA_RESOURCE_DESC`]; `resType` is the tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_RESOURCE_DESC_res {
    pub array: CUarray,
    pub mipmap: CUmipmappedArray,
    pub linear: CUDA_RESOURCE_DESC_linear,
    pub pitch2D: CUDA_RESOURCE_DESC_pitch2D,
    pub reserved: [c_int; 32],
}

/// What an object reads, as the driver says it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC {
    pub resType: CUresourcetype,
    pub res: CUDA_RESOURCE_DESC_res,
    pub flags: c_uint,
}

// SAFETY: every field is an integer, a pointer, or an array or union of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_RESOURCE_DESC {}

/// How a texture is read, as the driver says it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_TEXTURE_DESC {
    pub addressMode: [CUaddress_mode; 3],
    pub filterMode: CUfilter_mode,
    pub flags: c_uint,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: CUfilter_mode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub borderColor: [f32; 4],
    pub reserved: [c_int; 12],
}

// SAFETY: every field is a number or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_TEXTURE_DESC {}

/// An array as if it had another format, fewer levels or fewer layers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_VIEW_DESC {
    pub format: CUresourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
    pub reserved: [c_uint; 16],
}

// SAFETY: every field is an integer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_RESOURCE_VIEW_DESC {}

/// A run of elements in [`cudaResourceDesc`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceDesc_linear {
    pub devPtr: *mut c_void,
    pub desc: cudaChannelFormatDesc,
    pub sizeInBytes: usize,
}

/// Rows of elements in [`cudaResourceDesc`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceDesc_pitch2D {
    pub devPtr: *mut c_void,
    pub desc: cudaChannelFormatDesc,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

/// The part `res` of [`cudaResourceDesc`]; `resType` is the tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaResourceDesc_res {
    pub array: cudaArray_t,
    pub mipmap: cudaMipmappedArray_t,
    pub linear: cudaResourceDesc_linear,
    pub pitch2D: cudaResourceDesc_pitch2D,
}

/// What an object reads, as the runtime says it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaResourceDesc {
    pub resType: CUresourcetype,
    pub res: cudaResourceDesc_res,
}

// SAFETY: every field is an integer, a pointer, or a structure or union of them; all zeroes is a value of each.
unsafe impl Plain for cudaResourceDesc {}

/// How a texture is read, as the runtime says it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaTextureDesc {
    pub addressMode: [CUaddress_mode; 3],
    pub filterMode: CUfilter_mode,
    pub readMode: cudaTextureReadMode,
    pub sRGB: c_int,
    pub borderColor: [f32; 4],
    pub normalizedCoords: c_int,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: CUfilter_mode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub disableTrilinearOptimization: c_int,
    pub seamlessCubemap: c_int,
}

// SAFETY: every field is a number or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaTextureDesc {}

/// As [`CUDA_RESOURCE_VIEW_DESC`], without room for more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceViewDesc {
    pub format: CUresourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
}

// SAFETY: every field is an integer; all zeroes is a value of each.
unsafe impl Plain for cudaResourceViewDesc {}

c_enum! {
    /// The format of a view. Between `NONE` and `UNSIGNED_BC1` are the plain ones: three of each kind, of 1, 2 and 4 channels.
    CUresourceViewFormat {
        NONE = 0,
        UINT_1X8 = 0x01,
        SINT_1X8 = 0x04,
        UINT_1X16 = 0x07,
        SINT_1X16 = 0x0a,
        UINT_1X32 = 0x0d,
        SINT_1X32 = 0x10,
        FLOAT_1X16 = 0x13,
        FLOAT_1X32 = 0x16,
        UNSIGNED_BC1 = 0x19,
        UNSIGNED_BC7 = 0x22,
    }
}
