//! Memory Management: `cudaMemcpy*`.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use super::stream::resolve;
use crate::abi::{
    Error, Result, conv, cudaArray_t, cudaExtent, cudaMemcpy3DParms, cudaMemcpy3DPeerParms, cudaMemcpyKind,
    cudaPitchedPtr, cudaPos, cudaStream_t,
};
use crate::api::driver::{ACROSS, DOWN, Known, UNIFIED, UP, linear, transfer};
use crate::device::{self, context};
use crate::memory::array::{self, Array};
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
    let side = |start, pitch: usize| Side::boxed(start, pitch as u64, height as u64);
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

/// One side of a three-dimensional copy: `position` counts elements of `element` bytes, `extent` is in bytes.
fn corner(pointer: &cudaPitchedPtr, position: &cudaPos, element: u64, extent: &Extent) -> Result<Side> {
    let (pitch, rows) = (pointer.pitch as u64, pointer.ysize as u64);
    if pointer.ptr.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // As recorded, only this check takes an array's elements for bytes.
    if extent.width / element > pitch || extent.depth > 1 && extent.height > rows {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    let x = (position.x as u64).checked_mul(element).ok_or(Error::INVALID_VALUE)?;
    if x.checked_add(extent.width).is_none_or(|end| end > pitch) {
        return Err(Error::INVALID_VALUE);
    }
    let start = (position.z as u64)
        .checked_mul(rows)
        .and_then(|skipped| {
            skipped
                .checked_add(position.y as u64)?
                .checked_mul(pitch)?
                .checked_add(x)
        })
        .and_then(|offset| (pointer.ptr as u64).checked_add(offset))
        .ok_or(Error::INVALID_VALUE)?;
    Ok(Side::boxed(start, pitch, rows))
}

/// One side of a copy of a box, as the runtime describes it.
#[derive(Clone, Copy)]
pub(super) struct Corner<'a> {
    pub(super) pointer: &'a cudaPitchedPtr,
    pub(super) position: &'a cudaPos,
    pub(super) array: cudaArray_t,
}

impl<'a> Corner<'a> {
    /// In memory.
    pub(super) fn of_pointer(pointer: &'a cudaPitchedPtr, position: &'a cudaPos) -> Self {
        Self {
            pointer,
            position,
            array: core::ptr::null_mut(),
        }
    }

    fn array(&self) -> Result<Option<Arc<Array>>> {
        if self.array.is_null() {
            return Ok(None);
        }
        if !self.pointer.ptr.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        array::get(self.array as u64).map(Some)
    }

    fn side(&self, element: u64, extent: &Extent) -> Result<Side> {
        let cudaPos { x, y, z } = *self.position;
        match self.array()? {
            Some(array) => {
                let x = (x as u64).checked_mul(element).ok_or(Error::INVALID_VALUE)?;
                array.side([x, y as u64, z as u64], extent)
            }
            None => corner(self.pointer, self.position, element, extent),
        }
    }
}

/// Bytes of what the extent and the positions of a copy count: the elements of the array that takes part, or bytes.
///
/// # Errors
/// INVALID_VALUE for arrays with elements of different sizes.
pub(super) fn element(dst: &Corner, src: &Corner) -> Result<u64> {
    let size = |array: &Arc<Array>| array.format.element_size();
    match (dst.array()?.as_ref().map(size), src.array()?.as_ref().map(size)) {
        (Some(to), Some(from)) if to != from => Err(Error::INVALID_VALUE),
        (to, from) => Ok(to.or(from).unwrap_or(1)),
    }
}

/// Both sides of a copy of a box that is not empty, destination and source, and its extent in bytes.
///
/// # Errors
/// As [`element`]; INVALID_VALUE for an array that `kind` takes for the host (recorded of sources), for a side that is given twice or not at
/// all, and for a box that leaves an array or a pitch; INVALID_PITCH_VALUE.
pub(super) fn box_sides(
    dst: &Corner,
    src: &Corner,
    extent: &cudaExtent,
    kind: cudaMemcpyKind,
) -> Result<(Side, Side, Extent)> {
    let element = element(dst, src)?;
    if !src.array.is_null() && matches!(kind.0, 0 | 1) {
        return Err(Error::INVALID_VALUE);
    }
    let width = (extent.width as u64).checked_mul(element);
    let extent = Extent {
        width: width.ok_or(Error::INVALID_VALUE)?,
        height: extent.height as u64,
        depth: extent.depth as u64,
    };
    Ok((dst.side(element, &extent)?, src.side(element, &extent)?, extent))
}

fn copy_box(stream: &Stream, p: &cudaMemcpy3DParms, known: Result<Known>, wait: bool) -> Result<()> {
    if p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0 {
        return Ok(());
    }
    let known = known?;
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
    let (dst, src, extent) = box_sides(&to, &from, &p.extent, p.kind)?;
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
    copy_box(stream, &parameters, Ok(ACROSS.named()), wait)
}

fn copy_peer(stream: &Stream, dst: (*mut c_void, c_int), src: (*const c_void, c_int), size: usize) -> Result<()> {
    device::get(dst.1)?;
    device::get(src.1)?;
    linear(stream, dst.0 as u64, src.0 as u64, size, ACROSS.named(), false)
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
        let parameters = conv::read(parameters)?;
        copy_box(&*own(default)?, &parameters, known(parameters.kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy3DAsync`.
    fn cudaMemcpy3DAsync(parameters: *const cudaMemcpy3DParms, stream: cudaStream_t), fn cudaMemcpy3DAsync_ptsz(..) |default| {
        let parameters = conv::read(parameters)?;
        copy_box(&*resolve(stream, default)?, &parameters, known(parameters.kind), false)
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
