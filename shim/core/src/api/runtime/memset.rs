//! Memory Management: `cudaMemset*`.

use core::ffi::{c_int, c_void};

use super::stream::resolve;
use crate::abi::{Error, Result, cudaExtent, cudaPitchedPtr, cudaStream_t};
use crate::device::context;
use crate::stream::DefaultStream;
use crate::stream::fill::Target;
use crate::stream::spans::{Extent, Side};
use crate::streamed;

/// The stream of a call without a stream argument.
fn own(default: DefaultStream) -> Result<Target> {
    Ok(Target {
        stream: context::runtime_current()?.streams()?.default(default)?,
        wait: true,
    })
}

/// The stream that a call names.
fn later(stream: cudaStream_t, default: DefaultStream) -> Result<Target> {
    Ok(Target {
        stream: resolve(stream, default)?,
        wait: false,
    })
}

/// Fills boxes, rows and runs of bytes alike; only the low byte of `value` counts.
fn set(target: &Target, side: &Side, value: c_int, extent: &Extent) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    if (extent.height > 1 || extent.depth > 1) && extent.width > side.pitch {
        return Err(Error::INVALID_VALUE);
    }
    target.fill(side, extent, value as u32 & 0xff, 1)
}

fn run(target: &Target, ptr: *mut c_void, value: c_int, count: usize) -> Result<()> {
    set(target, &Side::at(ptr as u64), value, &Extent::linear(count as u64))
}

fn rows(target: &Target, ptr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) -> Result<()> {
    let extent = Extent {
        width: width as u64,
        height: height as u64,
        depth: 1,
    };
    set(
        target,
        &Side::boxed(ptr as u64, pitch as u64, extent.height),
        value,
        &extent,
    )
}

fn cube(target: &Target, pointer: &cudaPitchedPtr, value: c_int, extent: &cudaExtent) -> Result<()> {
    let extent = Extent {
        width: extent.width as u64,
        height: extent.height as u64,
        depth: extent.depth as u64,
    };
    let side = Side::boxed(pointer.ptr as u64, pointer.pitch as u64, pointer.ysize as u64);
    set(target, &side, value, &extent)
}

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemset`.
    fn cudaMemset(ptr: *mut c_void, value: c_int, count: usize), fn cudaMemset_ptds(..) |default| {
        run(&own(default)?, ptr, value, count)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemsetAsync`.
    fn cudaMemsetAsync(ptr: *mut c_void, value: c_int, count: usize, stream: cudaStream_t),
    fn cudaMemsetAsync_ptsz(..) |default| {
        run(&later(stream, default)?, ptr, value, count)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemset2D`.
    fn cudaMemset2D(ptr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize),
    fn cudaMemset2D_ptds(..) |default| {
        rows(&own(default)?, ptr, pitch, value, width, height)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemset2DAsync`.
    fn cudaMemset2DAsync(
        ptr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: cudaStream_t,
    ), fn cudaMemset2DAsync_ptsz(..) |default| {
        rows(&later(stream, default)?, ptr, pitch, value, width, height)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemset3D`.
    fn cudaMemset3D(pointer: cudaPitchedPtr, value: c_int, extent: cudaExtent), fn cudaMemset3D_ptds(..) |default| {
        cube(&own(default)?, &pointer, value, &extent)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemset3DAsync`.
    fn cudaMemset3DAsync(pointer: cudaPitchedPtr, value: c_int, extent: cudaExtent, stream: cudaStream_t),
    fn cudaMemset3DAsync_ptsz(..) |default| {
        cube(&later(stream, default)?, &pointer, value, &extent)
    }
}
