//! Memory Management: `cuMemcpy*`.

use core::ffi::c_void;

use super::stream::resolve;
use crate::abi::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUcontext, CUdeviceptr, CUmemorytype, CUstream, Error,
    Result, conv,
};
use crate::device::{Context, context};
use crate::graph;
use crate::memory::{array, pool};
use crate::stream::copy::copy;
use crate::stream::locate::{Place, place};
use crate::stream::spans::{Extent, Side};
use crate::stream::{DefaultStream, Stream};
use crate::streamed;

use std::sync::Arc;

/// Which sides must be memory that CUDA knows: the call's name says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::api) struct Known {
    pub(in crate::api) dst: bool,
    pub(in crate::api) src: bool,
    /// The call names a context or a device for each side, which has access to it; elsewhere the current one must have.
    pub(in crate::api) named: bool,
}

impl Known {
    pub(in crate::api) const fn new(dst: bool, src: bool) -> Self {
        Self { dst, src, named: false }
    }

    /// Of a call that names the sides' contexts or devices.
    pub(in crate::api) const fn named(self) -> Self {
        Self { named: true, ..self }
    }
}

/// `cuMemcpy`: any side may be anything.
pub(in crate::api) const UNIFIED: Known = Known::new(false, false);
/// Host to device.
pub(in crate::api) const UP: Known = Known::new(true, false);
/// Device to host.
pub(in crate::api) const DOWN: Known = Known::new(false, true);
/// Device to device.
pub(in crate::api) const ACROSS: Known = Known::new(true, true);

/// Checks the sides and copies. As recorded, a known side may be pinned or managed memory as well as a device's.
pub(in crate::api) fn transfer(
    stream: &Stream,
    dst: &Side,
    src: &Side,
    extent: &Extent,
    known: Known,
    wait: bool,
) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    check_sides(dst, src, extent, known)?;
    // SAFETY: the application promises that the host ranges it names are its memory.
    unsafe { copy(stream, dst, src, extent, wait) }
}

/// Checks that both sides are there, and open to the current context's device, whatever stream copies (recorded). Memory that a graph
/// will allocate counts as known.
pub(in crate::api) fn check_sides(dst: &Side, src: &Side, extent: &Extent, known: Known) -> Result<()> {
    for (side, must_be_known) in [(dst, known.dst), (src, known.src)] {
        let place = place(side, extent)?;
        if must_be_known && matches!(place, Place::Pageable) && !graph::memory::owns(side.start) {
            return Err(Error::INVALID_VALUE);
        }
        if let Place::Device(owner) = place
            && !known.named
            && let Some(current) = context::peek()
            && current.device.ordinal != owner.ordinal
            && !pool::is_open_to(side.start, current.device)
        {
            return Err(Error::INVALID_VALUE);
        }
    }
    Ok(())
}

/// A copy of `size` contiguous bytes.
pub(in crate::api) fn linear(stream: &Stream, dst: u64, src: u64, size: usize, known: Known, wait: bool) -> Result<()> {
    let extent = Extent::linear(size as u64);
    transfer(stream, &Side::at(dst), &Side::at(src), &extent, known, wait)
}

/// The stream of a call without a stream argument.
pub(super) fn own(default: DefaultStream) -> Result<Arc<Stream>> {
    context::current()?.streams()?.default(default)
}

/// One side of a `CUDA_MEMCPY*`.
struct Operand {
    kind: CUmemorytype,
    host: u64,
    device: CUdeviceptr,
    array: CUarray,
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    pitch: usize,
    height: usize,
}

impl Operand {
    /// Where it is. A pitch or height of 0 means no gaps, as recorded.
    fn side(&self, extent: &Extent) -> Result<(Side, bool)> {
        let (base, known) = match self.kind {
            CUmemorytype::HOST => (self.host, false),
            CUmemorytype::DEVICE => (self.device, true),
            CUmemorytype::UNIFIED => (self.device, false),
            CUmemorytype::ARRAY => {
                if self.array.is_null() || self.level != 0 {
                    return Err(Error::INVALID_VALUE);
                }
                let start = [self.x, self.y, self.z].map(|n| n as u64);
                return Ok((array::get(self.array as u64)?.side(start, extent)?, true));
            }
            _ => return Err(Error::INVALID_VALUE),
        };
        let pitch = if self.pitch == 0 {
            extent.width
        } else {
            self.pitch as u64
        };
        let slice_height = if self.height == 0 {
            extent.height
        } else {
            self.height as u64
        };
        let row_end = (self.x as u64).checked_add(extent.width).ok_or(Error::INVALID_VALUE)?;
        if (extent.height > 1 || extent.depth > 1) && row_end > pitch
            || extent.depth > 1 && slice_height < extent.height
        {
            return Err(Error::INVALID_VALUE);
        }
        let start = (self.z as u64)
            .checked_mul(slice_height)
            .and_then(|rows| {
                rows.checked_add(self.y as u64)?
                    .checked_mul(pitch)?
                    .checked_add(self.x as u64)
            })
            .and_then(|offset| base.checked_add(offset))
            .ok_or(Error::INVALID_VALUE)?;
        Ok((
            Side::boxed(if base == 0 { 0 } else { start }, pitch, slice_height),
            known,
        ))
    }
}

fn boxed(stream: &Stream, dst: &Operand, src: &Operand, extent: &Extent, named: bool, wait: bool) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    let (to, to_known) = dst.side(extent)?;
    let (from, from_known) = src.side(extent)?;
    let known = Known {
        dst: to_known,
        src: from_known,
        named,
    };
    transfer(stream, &to, &from, extent, known, wait)
}

fn copy_2d(stream: &Stream, arguments: *const CUDA_MEMCPY2D, wait: bool) -> Result<()> {
    let c = conv::read(arguments)?;
    let dst = Operand {
        kind: c.dstMemoryType,
        host: c.dstHost as u64,
        device: c.dstDevice,
        array: c.dstArray,
        x: c.dstXInBytes,
        y: c.dstY,
        z: 0,
        level: 0,
        pitch: c.dstPitch,
        height: 0,
    };
    let src = Operand {
        kind: c.srcMemoryType,
        host: c.srcHost as u64,
        device: c.srcDevice,
        array: c.srcArray,
        x: c.srcXInBytes,
        y: c.srcY,
        z: 0,
        level: 0,
        pitch: c.srcPitch,
        height: 0,
    };
    let extent = Extent {
        width: c.WidthInBytes as u64,
        height: c.Height as u64,
        depth: 1,
    };
    boxed(stream, &dst, &src, &extent, false, wait)
}

/// The two operands of a copy of a box, and its extent.
fn operands_3d(c: &CUDA_MEMCPY3D) -> (Operand, Operand, Extent) {
    let dst = Operand {
        kind: c.dstMemoryType,
        host: c.dstHost as u64,
        device: c.dstDevice,
        array: c.dstArray,
        x: c.dstXInBytes,
        y: c.dstY,
        z: c.dstZ,
        level: c.dstLOD,
        pitch: c.dstPitch,
        height: c.dstHeight,
    };
    let src = Operand {
        kind: c.srcMemoryType,
        host: c.srcHost as u64,
        device: c.srcDevice,
        array: c.srcArray,
        x: c.srcXInBytes,
        y: c.srcY,
        z: c.srcZ,
        level: c.srcLOD,
        pitch: c.srcPitch,
        height: c.srcHeight,
    };
    let extent = Extent {
        width: c.WidthInBytes as u64,
        height: c.Height as u64,
        depth: c.Depth as u64,
    };
    (dst, src, extent)
}

/// The sides of a copy of a box, its extent, and which sides must be memory that CUDA knows.
pub(in crate::api) fn sides_3d(c: &CUDA_MEMCPY3D) -> Result<(Side, Side, Extent, Known)> {
    let (dst, src, extent) = operands_3d(c);
    let ((dst, dst_known), (src, src_known)) = (dst.side(&extent)?, src.side(&extent)?);
    Ok((dst, src, extent, Known::new(dst_known, src_known)))
}

fn copy_3d(stream: &Stream, c: &CUDA_MEMCPY3D, wait: bool) -> Result<()> {
    let (dst, src, extent) = operands_3d(c);
    boxed(stream, &dst, &src, &extent, false, wait)
}

fn copy_3d_peer(stream: &Stream, c: *const CUDA_MEMCPY3D_PEER, wait: bool) -> Result<()> {
    let (dst, src, extent) = operands_3d(&without_contexts(c)?);
    boxed(stream, &dst, &src, &extent, true, wait)
}

/// The peer form differs only by the two contexts, which the addresses say already.
fn without_contexts(arguments: *const CUDA_MEMCPY3D_PEER) -> Result<CUDA_MEMCPY3D> {
    let c = conv::read(arguments)?;
    for (kind, context) in [(c.srcMemoryType, c.srcContext), (c.dstMemoryType, c.dstContext)] {
        // An array knows its own (recorded).
        if kind != CUmemorytype::ARRAY {
            Context::from_handle(context)?;
        }
    }
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: c.srcXInBytes,
        srcY: c.srcY,
        srcZ: c.srcZ,
        srcLOD: c.srcLOD,
        srcMemoryType: c.srcMemoryType,
        srcHost: c.srcHost,
        srcDevice: c.srcDevice,
        srcArray: c.srcArray,
        reserved0: core::ptr::null_mut(),
        srcPitch: c.srcPitch,
        srcHeight: c.srcHeight,
        dstXInBytes: c.dstXInBytes,
        dstY: c.dstY,
        dstZ: c.dstZ,
        dstLOD: c.dstLOD,
        dstMemoryType: c.dstMemoryType,
        dstHost: c.dstHost,
        dstDevice: c.dstDevice,
        dstArray: c.dstArray,
        reserved1: core::ptr::null_mut(),
        dstPitch: c.dstPitch,
        dstHeight: c.dstHeight,
        WidthInBytes: c.WidthInBytes,
        Height: c.Height,
        Depth: c.Depth,
    })
}

fn peer(dst: (CUdeviceptr, CUcontext), src: (CUdeviceptr, CUcontext), size: usize, stream: &Stream) -> Result<()> {
    Context::from_handle(dst.1)?.check()?;
    Context::from_handle(src.1)?.check()?;
    linear(stream, dst.0, src.0, size, ACROSS.named(), false)
}

streamed! { driver
    /// CUDA Driver API, Memory Management: `cuMemcpy`.
    fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, size: usize), fn cuMemcpy_ptds(..) |default| {
        linear(&*own(default)?, dst, src, size, UNIFIED, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyHtoD`.
    fn cuMemcpyHtoD_v2(dst: CUdeviceptr, src: *const c_void, size: usize), fn cuMemcpyHtoD_v2_ptds(..) |default| {
        linear(&*own(default)?, dst, src as u64, size, UP, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyDtoH`.
    fn cuMemcpyDtoH_v2(dst: *mut c_void, src: CUdeviceptr, size: usize), fn cuMemcpyDtoH_v2_ptds(..) |default| {
        linear(&*own(default)?, dst as u64, src, size, DOWN, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyDtoD`.
    fn cuMemcpyDtoD_v2(dst: CUdeviceptr, src: CUdeviceptr, size: usize), fn cuMemcpyDtoD_v2_ptds(..) |default| {
        linear(&*own(default)?, dst, src, size, ACROSS, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyPeer`.
    fn cuMemcpyPeer(dst: CUdeviceptr, dst_context: CUcontext, src: CUdeviceptr, src_context: CUcontext, size: usize),
    fn cuMemcpyPeer_ptds(..) |default| {
        peer((dst, dst_context), (src, src_context), size, &*own(default)?)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyAsync`.
    fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, size: usize, stream: CUstream), fn cuMemcpyAsync_ptsz(..) |default| {
        linear(&*resolve(stream, default)?, dst, src, size, UNIFIED, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyHtoDAsync`.
    fn cuMemcpyHtoDAsync_v2(dst: CUdeviceptr, src: *const c_void, size: usize, stream: CUstream),
    fn cuMemcpyHtoDAsync_v2_ptsz(..) |default| {
        linear(&*resolve(stream, default)?, dst, src as u64, size, UP, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyDtoHAsync`.
    fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: CUdeviceptr, size: usize, stream: CUstream),
    fn cuMemcpyDtoHAsync_v2_ptsz(..) |default| {
        linear(&*resolve(stream, default)?, dst as u64, src, size, DOWN, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyDtoDAsync`.
    fn cuMemcpyDtoDAsync_v2(dst: CUdeviceptr, src: CUdeviceptr, size: usize, stream: CUstream),
    fn cuMemcpyDtoDAsync_v2_ptsz(..) |default| {
        linear(&*resolve(stream, default)?, dst, src, size, ACROSS, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyPeerAsync`.
    fn cuMemcpyPeerAsync(
        dst: CUdeviceptr, dst_context: CUcontext, src: CUdeviceptr, src_context: CUcontext, size: usize, stream: CUstream,
    ), fn cuMemcpyPeerAsync_ptsz(..) |default| {
        peer((dst, dst_context), (src, src_context), size, &*resolve(stream, default)?)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy2D`.
    fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D), fn cuMemcpy2D_v2_ptds(..) |default| {
        copy_2d(&*own(default)?, copy, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy2DUnaligned`. Alignment never matters here.
    fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D), fn cuMemcpy2DUnaligned_v2_ptds(..) |default| {
        copy_2d(&*own(default)?, copy, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy2DAsync`.
    fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream), fn cuMemcpy2DAsync_v2_ptsz(..) |default| {
        copy_2d(&*resolve(stream, default)?, copy, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy3D`.
    fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D), fn cuMemcpy3D_v2_ptds(..) |default| {
        copy_3d(&*own(default)?, &conv::read(copy)?, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy3DAsync`.
    fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream), fn cuMemcpy3DAsync_v2_ptsz(..) |default| {
        copy_3d(&*resolve(stream, default)?, &conv::read(copy)?, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy3DPeer`.
    fn cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D_PEER), fn cuMemcpy3DPeer_ptds(..) |default| {
        copy_3d_peer(&*own(default)?, copy, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpy3DPeerAsync`.
    fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream), fn cuMemcpy3DPeerAsync_ptsz(..) |default| {
        copy_3d_peer(&*resolve(stream, default)?, copy, false)
    }
}
