//! Memory Management: `cudaMemcpy*`.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use super::stream::resolve;
use crate::abi::{
    Error, Result, conv, cudaArray_t, cudaMemcpy3DParms, cudaMemcpy3DPeerParms, cudaMemcpyKind, cudaPitchedPtr,
    cudaPos, cudaStream_t,
};
use crate::api::driver::{ACROSS, DOWN, Known, UNIFIED, UP, linear, transfer};
use crate::device::{self, context};
use crate::stream::spans::{Extent, Side};
use crate::stream::{DefaultStream, Stream};
use crate::{runtime, streamed};

/// Which sides a kind asserts. As recorded, an assertion only excludes pageable host memory, and HostToHost asserts nothing.
pub(super) fn known(kind: cudaMemcpyKind) -> Result<Known> {
    match kind.0 {
        0 | 4 => Ok(UNIFIED),
        1 => Ok(UP),
        2 => Ok(DOWN),
        3 => Ok(ACROSS),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// The stream of a call without a stream argument.
pub(super) fn own(default: DefaultStream) -> Result<Arc<Stream>> {
    context::runtime_current()?.streams()?.default(default)
}

/// Size 0 succeeds before anything is looked at.
fn copy_linear(
    stream: &Stream,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: cudaMemcpyKind,
    wait: bool,
) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    linear(stream, dst as u64, src as u64, size, known(kind)?, wait)
}

/// `height` rows of `width` bytes.
#[derive(Clone, Copy)]
struct Rows {
    width: usize,
    height: usize,
}

fn copy_rows(
    stream: &Stream,
    dst: (*mut c_void, usize),
    src: (*const c_void, usize),
    rows: Rows,
    kind: cudaMemcpyKind,
    wait: bool,
) -> Result<()> {
    let Rows { width, height } = rows;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let known = known(kind)?;
    if width > dst.1 || width > src.1 {
        return Err(if height == 1 {
            Error::INVALID_VALUE
        } else {
            Error::INVALID_PITCH_VALUE
        });
    }
    let side = |start, pitch: usize| Side {
        start,
        pitch: pitch as u64,
        slice_height: height as u64,
    };
    let extent = Extent {
        width: width as u64,
        height: height as u64,
        depth: 1,
    };
    transfer(
        stream,
        &side(dst.0 as u64, dst.1),
        &side(src.0 as u64, src.1),
        &extent,
        known,
        wait,
    )
}

/// One side of a three-dimensional copy.
fn corner(pointer: &cudaPitchedPtr, position: &cudaPos, extent: &Extent) -> Result<Side> {
    let (pitch, rows) = (pointer.pitch as u64, pointer.ysize as u64);
    if extent.width > pitch || extent.depth > 1 && extent.height > rows {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    if (position.x as u64)
        .checked_add(extent.width)
        .is_none_or(|end| end > pitch)
        || pointer.ptr.is_null()
    {
        return Err(Error::INVALID_VALUE);
    }
    let start = (position.z as u64)
        .checked_mul(rows)
        .and_then(|skipped| {
            skipped
                .checked_add(position.y as u64)?
                .checked_mul(pitch)?
                .checked_add(position.x as u64)
        })
        .and_then(|offset| (pointer.ptr as u64).checked_add(offset))
        .ok_or(Error::INVALID_VALUE)?;
    Ok(Side {
        start,
        pitch,
        slice_height: rows,
    })
}

/// One side of a copy of a box, as the runtime describes it.
pub(super) struct Corner<'a> {
    pub(super) pointer: &'a cudaPitchedPtr,
    pub(super) position: &'a cudaPos,
    pub(super) array: cudaArray_t,
}

/// Both sides of a copy of a box, which is not empty: destination, source.
pub(super) fn box_sides(dst: &Corner, src: &Corner, extent: &Extent) -> Result<(Side, Side)> {
    if !dst.array.is_null() || !src.array.is_null() {
        log::warn!("copies of CUDA arrays are not supported yet");
        return Err(Error::NOT_SUPPORTED);
    }
    Ok((
        corner(dst.pointer, dst.position, extent)?,
        corner(src.pointer, src.position, extent)?,
    ))
}

fn copy_box(stream: &Stream, p: &cudaMemcpy3DParms, wait: bool) -> Result<()> {
    let extent = Extent {
        width: p.extent.width as u64,
        height: p.extent.height as u64,
        depth: p.extent.depth as u64,
    };
    if extent.is_empty() {
        return Ok(());
    }
    let known = known(p.kind)?;
    let to = Corner {
        pointer: &p.dstPtr,
        position: &p.dstPos,
        array: p.dstArray,
    };
    let from = Corner {
        pointer: &p.srcPtr,
        position: &p.srcPos,
        array: p.srcArray,
    };
    let (dst, src) = box_sides(&to, &from, &extent)?;
    transfer(stream, &dst, &src, &extent, known, wait)
}

fn copy_box_peer(stream: &Stream, p: &cudaMemcpy3DPeerParms, wait: bool) -> Result<()> {
    device::get(p.dstDevice)?;
    device::get(p.srcDevice)?;
    let parameters = cudaMemcpy3DParms {
        srcArray: p.srcArray,
        srcPos: p.srcPos,
        srcPtr: p.srcPtr,
        dstArray: p.dstArray,
        dstPos: p.dstPos,
        dstPtr: p.dstPtr,
        extent: p.extent,
        kind: cudaMemcpyKind(3),
    };
    copy_box(stream, &parameters, wait)
}

fn copy_peer(stream: &Stream, dst: (*mut c_void, c_int), src: (*const c_void, c_int), size: usize) -> Result<()> {
    device::get(dst.1)?;
    device::get(src.1)?;
    linear(stream, dst.0 as u64, src.0 as u64, size, ACROSS, false)
}

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemcpy`.
    fn cudaMemcpy(dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind), fn cudaMemcpy_ptds(..) |default| {
        copy_linear(&*own(default)?, dst, src, count, kind, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyAsync`.
    fn cudaMemcpyAsync(
        dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpyAsync_ptsz(..) |default| {
        copy_linear(&*resolve(stream, default)?, dst, src, count, kind, false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2D`.
    fn cudaMemcpy2D(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpy2D_ptds(..) |default| {
        copy_rows(&*own(default)?, (dst, dpitch), (src, spitch), Rows { width, height }, kind, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DAsync`.
    fn cudaMemcpy2DAsync(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpy2DAsync_ptsz(..) |default| {
        copy_rows(&*resolve(stream, default)?, (dst, dpitch), (src, spitch), Rows { width, height }, kind, false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3D`.
    fn cudaMemcpy3D(parameters: *const cudaMemcpy3DParms), fn cudaMemcpy3D_ptds(..) |default| {
        copy_box(&*own(default)?, &conv::read(parameters)?, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3DAsync`.
    fn cudaMemcpy3DAsync(parameters: *const cudaMemcpy3DParms, stream: cudaStream_t), fn cudaMemcpy3DAsync_ptsz(..) |default| {
        copy_box(&*resolve(stream, default)?, &conv::read(parameters)?, false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3DPeer`.
    fn cudaMemcpy3DPeer(parameters: *const cudaMemcpy3DPeerParms), fn cudaMemcpy3DPeer_ptds(..) |default| {
        copy_box_peer(&*own(default)?, &conv::read(parameters)?, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3DPeerAsync`.
    fn cudaMemcpy3DPeerAsync(parameters: *const cudaMemcpy3DPeerParms, stream: cudaStream_t),
    fn cudaMemcpy3DPeerAsync_ptsz(..) |default| {
        copy_box_peer(&*resolve(stream, default)?, &conv::read(parameters)?, false)
    }
}

runtime! {
    /// CUDA Runtime API, Memory Management: `cudaMemcpyPeer`.
    fn cudaMemcpyPeer(dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, count: usize) {
        copy_peer(&*own(DefaultStream::Legacy)?, (dst, dst_device), (src, src_device), count)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyPeerAsync`.
    fn cudaMemcpyPeerAsync(
        dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, count: usize, stream: cudaStream_t,
    ) {
        copy_peer(&*resolve(stream, DefaultStream::Legacy)?, (dst, dst_device), (src, src_device), count)
    }
}
