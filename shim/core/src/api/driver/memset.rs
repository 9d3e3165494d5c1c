//! Memory Management: `cuMemset*`.

use super::stream::resolve;
use crate::abi::{CUdeviceptr, CUstream, Error, Result};
use crate::device::context;
use crate::stream::DefaultStream;
use crate::stream::fill::Target;
use crate::stream::spans::{Extent, Side};
use crate::streamed;

/// The stream of a call without a stream argument.
fn own(default: DefaultStream) -> Result<Target> {
    Ok(Target {
        stream: context::current()?.streams()?.default(default)?,
        wait: true,
    })
}

/// The stream that a call names.
fn later(stream: CUstream, default: DefaultStream) -> Result<Target> {
    Ok(Target {
        stream: resolve(stream, default)?,
        wait: false,
    })
}

/// Fills `count` elements of `element` bytes.
fn linear(target: &Target, dst: CUdeviceptr, value: u32, element: usize, count: usize) -> Result<()> {
    rows(target, dst, 0, value, element, count, 1)
}

/// Fills `height` rows of `width` elements.
fn rows(
    target: &Target,
    dst: CUdeviceptr,
    pitch: usize,
    value: u32,
    element: usize,
    width: usize,
    height: usize,
) -> Result<()> {
    let bytes = width.checked_mul(element).ok_or(Error::INVALID_VALUE)?;
    if bytes == 0 || height == 0 {
        return Ok(());
    }
    if !dst.is_multiple_of(element as u64) || height > 1 && (!pitch.is_multiple_of(element) || pitch < bytes) {
        return Err(Error::INVALID_VALUE);
    }
    let extent = Extent {
        width: bytes as u64,
        height: height as u64,
        depth: 1,
    };
    target.fill(&Side::boxed(dst, pitch as u64, extent.height), &extent, value, element)
}

streamed! { driver
    /// CUDA Driver API, Memory Management: `cuMemsetD8`.
    fn cuMemsetD8_v2(dst: CUdeviceptr, value: u8, count: usize), fn cuMemsetD8_v2_ptds(..) |default| {
        linear(&own(default)?, dst, value.into(), 1, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD16`. The address must be even.
    fn cuMemsetD16_v2(dst: CUdeviceptr, value: u16, count: usize), fn cuMemsetD16_v2_ptds(..) |default| {
        linear(&own(default)?, dst, value.into(), 2, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD32`. The address must be a multiple of 4.
    fn cuMemsetD32_v2(dst: CUdeviceptr, value: u32, count: usize), fn cuMemsetD32_v2_ptds(..) |default| {
        linear(&own(default)?, dst, value, 4, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D8`.
    fn cuMemsetD2D8_v2(dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize),
    fn cuMemsetD2D8_v2_ptds(..) |default| {
        rows(&own(default)?, dst, pitch, value.into(), 1, width, height)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D16`.
    fn cuMemsetD2D16_v2(dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize),
    fn cuMemsetD2D16_v2_ptds(..) |default| {
        rows(&own(default)?, dst, pitch, value.into(), 2, width, height)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D32`.
    fn cuMemsetD2D32_v2(dst: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize),
    fn cuMemsetD2D32_v2_ptds(..) |default| {
        rows(&own(default)?, dst, pitch, value, 4, width, height)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD8Async`.
    fn cuMemsetD8Async(dst: CUdeviceptr, value: u8, count: usize, stream: CUstream), fn cuMemsetD8Async_ptsz(..) |default| {
        linear(&later(stream, default)?, dst, value.into(), 1, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD16Async`.
    fn cuMemsetD16Async(dst: CUdeviceptr, value: u16, count: usize, stream: CUstream),
    fn cuMemsetD16Async_ptsz(..) |default| {
        linear(&later(stream, default)?, dst, value.into(), 2, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD32Async`.
    fn cuMemsetD32Async(dst: CUdeviceptr, value: u32, count: usize, stream: CUstream),
    fn cuMemsetD32Async_ptsz(..) |default| {
        linear(&later(stream, default)?, dst, value, 4, count)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D8Async`.
    fn cuMemsetD2D8Async(dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: CUstream),
    fn cuMemsetD2D8Async_ptsz(..) |default| {
        rows(&later(stream, default)?, dst, pitch, value.into(), 1, width, height)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D16Async`.
    fn cuMemsetD2D16Async(dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize, stream: CUstream),
    fn cuMemsetD2D16Async_ptsz(..) |default| {
        rows(&later(stream, default)?, dst, pitch, value.into(), 2, width, height)
    }

    /// CUDA Driver API, Memory Management: `cuMemsetD2D32Async`.
    fn cuMemsetD2D32Async(dst: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize, stream: CUstream),
    fn cuMemsetD2D32Async_ptsz(..) |default| {
        rows(&later(stream, default)?, dst, pitch, value, 4, width, height)
    }
}
