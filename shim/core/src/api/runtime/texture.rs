//! Texture Object Management: `cudaCreateChannelDesc`, `cudaGetChannelDesc`, texture objects.

use core::ffi::c_int;

use crate::abi::{cudaChannelFormatDesc, cudaChannelFormatKind};

/// CUDA Runtime API, Texture Object Management: `cudaCreateChannelDesc`. It cannot fail.
#[allow(non_snake_case)]
pub extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: cudaChannelFormatKind,
) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc { x, y, z, w, f }
}
