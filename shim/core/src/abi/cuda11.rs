//! Structures of CUDA 11's runtime: the beginnings of CUDA 12's.
//!
//! A program of CUDA 11 has room for no more, so no more may be written, or read.

use core::mem::offset_of;

use super::{cudaDeviceProp, cudaFuncAttributes, cudaTextureDesc};

/// Bytes of `cudaDeviceProp`.
pub const DEVICE_PROP: usize = offset_of!(cudaDeviceProp, hostRegisterSupported);
/// Bytes of `cudaFuncAttributes`, padding included.
pub const FUNC_ATTRIBUTES: usize =
    offset_of!(cudaFuncAttributes, clusterDimMustBeSet).next_multiple_of(align_of::<cudaFuncAttributes>());
/// Bytes of `cudaTextureDesc`.
pub const TEXTURE_DESC: usize = offset_of!(cudaTextureDesc, seamlessCubemap);

/// Asserts the size of a beginning and the offsets in it: `Type: SIZE = size { field: offset, }`.
macro_rules! assert_beginning {
    ($($name:ident: $constant:ident = $size:literal { $($field:ident: $offset:literal,)* })*) => {
        $(const _: () = {
            assert!($constant == $size, concat!("size of ", stringify!($name)));
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field))
            );)*
        };)*
    };
}
pub(super) use assert_beginning;
