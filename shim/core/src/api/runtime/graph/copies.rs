//! Copy nodes: the runtime's four ways to describe a copy.

use core::ffi::c_void;
use std::sync::Arc;

use super::super::memcpy::{Corner, box_sides, element, known};
use super::super::symbol::{from_symbol, to_symbol};
use crate::abi::{
    CUDA_MEMCPY3D, CUarray, CUmemorytype, Error, Plain, Result, conv, cudaExtent, cudaGraph_t, cudaGraphExec_t,
    cudaGraphNode_t, cudaMemcpy3DParms, cudaMemcpyKind, cudaPitchedPtr, cudaPos,
};
use crate::api::driver::check_sides;
use crate::api::driver::graph::exec::exec_set;
use crate::api::driver::graph::nodes::{New, set};
use crate::api::driver::graph::params::copy_at;
use crate::graph::Operation;
use crate::graph::operation::{Copy, Described};
use crate::memory::array;
use crate::runtime;
use crate::stream::spans::{Extent, Side};

/// What a kind says about the sides: destination, source.
fn memory_types(kind: cudaMemcpyKind) -> (CUmemorytype, CUmemorytype) {
    match kind.0 {
        0 => (CUmemorytype::HOST, CUmemorytype::HOST),
        1 => (CUmemorytype::DEVICE, CUmemorytype::HOST),
        2 => (CUmemorytype::HOST, CUmemorytype::DEVICE),
        3 => (CUmemorytype::DEVICE, CUmemorytype::DEVICE),
        _ => (CUmemorytype::UNIFIED, CUmemorytype::UNIFIED),
    }
}

/// The kind that was described by [`memory_types`].
fn kind_of(p: &CUDA_MEMCPY3D) -> cudaMemcpyKind {
    // An array is a device's memory.
    let side = |kind| match kind {
        CUmemorytype::ARRAY => CUmemorytype::DEVICE,
        kind => kind,
    };
    let types = (side(p.dstMemoryType), side(p.srcMemoryType));
    cudaMemcpyKind(
        (0..4)
            .find(|&kind| memory_types(cudaMemcpyKind(kind)) == types)
            .unwrap_or(4),
    )
}

/// A copy between sides, described as the driver API would.
fn described(dst: &Corner, src: &Corner, extent: &cudaExtent, kind: cudaMemcpyKind) -> Result<Described> {
    let (to, from) = memory_types(kind);
    let element = element(dst, src)? as usize;
    let kind = |corner: &Corner, kind| {
        if corner.array.is_null() {
            kind
        } else {
            CUmemorytype::ARRAY
        }
    };
    Ok(Described(CUDA_MEMCPY3D {
        srcXInBytes: src.position.x * element,
        srcY: src.position.y,
        srcZ: src.position.z,
        srcMemoryType: kind(src, from),
        srcHost: src.pointer.ptr,
        srcDevice: src.pointer.ptr as u64,
        srcArray: src.array.cast(),
        srcPitch: src.pointer.pitch,
        srcHeight: src.pointer.ysize,
        dstXInBytes: dst.position.x * element,
        dstY: dst.position.y,
        dstZ: dst.position.z,
        dstMemoryType: kind(dst, to),
        dstHost: dst.pointer.ptr,
        dstDevice: dst.pointer.ptr as u64,
        dstArray: dst.array.cast(),
        dstPitch: dst.pointer.pitch,
        dstHeight: dst.pointer.ysize,
        WidthInBytes: extent.width * element,
        Height: extent.height,
        Depth: extent.depth,
        ..CUDA_MEMCPY3D::zeroed()
    }))
}

/// A copy of `count` contiguous bytes.
fn linear(dst: u64, src: u64, count: usize, kind: cudaMemcpyKind) -> Result<Operation> {
    let known = known(kind)?;
    if count == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let (to, from, extent) = (Side::at(dst), Side::at(src), Extent::linear(count as u64));
    check_sides(&to, &from, &extent, known)?;
    let pointer = |address: u64| cudaPitchedPtr {
        ptr: address as *mut c_void,
        ..Plain::zeroed()
    };
    let (dst, src) = (pointer(dst), pointer(src));
    let origin = cudaPos::zeroed();
    let run = cudaExtent {
        width: count,
        height: 1,
        depth: 1,
    };
    let params = described(
        &Corner::of_pointer(&dst, &origin),
        &Corner::of_pointer(&src, &origin),
        &run,
        kind,
    )?;
    Ok(Operation::Copy(Arc::new(Copy::described(to, from, extent, params))))
}

/// A copy of a box.
pub(super) fn cube(p: &cudaMemcpy3DParms) -> Result<Operation> {
    let known = known(p.kind)?;
    // What was a run of bytes reads back without pitches.
    let packed = |pointer: &cudaPitchedPtr| cudaPitchedPtr {
        pitch: if pointer.pitch == 0 && !pointer.ptr.is_null() {
            p.extent.width
        } else {
            pointer.pitch
        },
        ysize: if pointer.ptr.is_null() {
            pointer.ysize
        } else {
            pointer.ysize.max(1)
        },
        ..*pointer
    };
    let (dst_ptr, src_ptr) = (packed(&p.dstPtr), packed(&p.srcPtr));
    if p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let to = Corner {
        pointer: &dst_ptr,
        position: &p.dstPos,
        array: p.dstArray,
    };
    let from = Corner {
        pointer: &src_ptr,
        position: &p.srcPos,
        array: p.srcArray,
    };
    let (dst, src, extent) = box_sides(&to, &from, &p.extent, p.kind)?;
    check_sides(&dst, &src, &extent, known)?;
    let (to, from) = (
        Corner {
            pointer: &p.dstPtr,
            ..to
        },
        Corner {
            pointer: &p.srcPtr,
            ..from
        },
    );
    let params = described(&to, &from, &p.extent, p.kind)?;
    Ok(Operation::Copy(Arc::new(Copy::described(dst, src, extent, params))))
}

/// A node's copy as the runtime reads it back.
fn read_back(node: cudaGraphNode_t) -> Result<cudaMemcpy3DParms> {
    let p = copy_at(node)?;
    let pointer = |kind, host: *const c_void, device: u64, pitch, ysize| match kind {
        CUmemorytype::ARRAY => cudaPitchedPtr::zeroed(),
        _ => cudaPitchedPtr {
            ptr: if kind == CUmemorytype::HOST {
                host.cast_mut()
            } else {
                device as *mut c_void
            },
            pitch,
            xsize: 0,
            ysize,
        },
    };
    // An array that was freed since has no elements to count any more.
    let element = |array: CUarray| array::get(array as u64).map_or(1, |array| array.format.element_size() as usize);
    let element = element(p.dstArray).max(element(p.srcArray));
    Ok(cudaMemcpy3DParms {
        srcArray: p.srcArray.cast(),
        dstArray: p.dstArray.cast(),
        srcPos: cudaPos {
            x: p.srcXInBytes / element,
            y: p.srcY,
            z: p.srcZ,
        },
        srcPtr: pointer(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcPitch, p.srcHeight),
        dstPos: cudaPos {
            x: p.dstXInBytes / element,
            y: p.dstY,
            z: p.dstZ,
        },
        dstPtr: pointer(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstPitch, p.dstHeight),
        extent: cudaExtent {
            width: p.WidthInBytes / element,
            height: p.Height,
            depth: p.Depth,
        },
        kind: kind_of(&p),
    })
}

/// To a variable.
fn upload(
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result<Operation> {
    linear(to_symbol(symbol, count, offset, kind)?, src as u64, count, kind)
}

/// From a variable.
fn download(
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result<Operation> {
    linear(dst as u64, from_symbol(symbol, count, offset, kind)?, count, kind)
}

runtime! {
    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemcpyNode`.
    fn cudaGraphAddMemcpyNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *const cudaMemcpy3DParms,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { new.add(|| cube(&conv::read(params)?)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemcpyNode1D`.
    fn cudaGraphAddMemcpyNode1D(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, dst: *mut c_void,
        src: *const c_void, bytes: usize, kind: cudaMemcpyKind,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| linear(dst as u64, src as u64, bytes, kind)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemcpyNodeToSymbol`.
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, symbol: *const c_void,
        src: *const c_void, bytes: usize, offset: usize, kind: cudaMemcpyKind,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| upload(symbol, src, bytes, offset, kind)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemcpyNodeFromSymbol`.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, dst: *mut c_void,
        symbol: *const c_void, bytes: usize, offset: usize, kind: cudaMemcpyKind,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| download(dst, symbol, bytes, offset, kind)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemcpyNodeGetParams`.
    fn cudaGraphMemcpyNodeGetParams(node: cudaGraphNode_t, params: *mut cudaMemcpy3DParms) {
        conv::write(params, read_back(node)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemcpyNodeSetParams`.
    fn cudaGraphMemcpyNodeSetParams(node: cudaGraphNode_t, params: *const cudaMemcpy3DParms) {
        set(node, || cube(&conv::read(params)?))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemcpyNodeSetParams1D`.
    fn cudaGraphMemcpyNodeSetParams1D(
        node: cudaGraphNode_t, dst: *mut c_void, src: *const c_void, bytes: usize, kind: cudaMemcpyKind,
    ) {
        set(node, || linear(dst as u64, src as u64, bytes, kind))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemcpyNodeSetParamsToSymbol`.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: cudaGraphNode_t, symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize, kind: cudaMemcpyKind,
    ) {
        set(node, || upload(symbol, src, bytes, offset, kind))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemcpyNodeSetParamsFromSymbol`.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: cudaGraphNode_t, dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: cudaMemcpyKind,
    ) {
        set(node, || download(dst, symbol, bytes, offset, kind))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecMemcpyNodeSetParams`.
    fn cudaGraphExecMemcpyNodeSetParams(exec: cudaGraphExec_t, node: cudaGraphNode_t, params: *const cudaMemcpy3DParms) {
        exec_set(exec, node, || cube(&conv::read(params)?))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecMemcpyNodeSetParams1D`.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: cudaGraphExec_t, node: cudaGraphNode_t, dst: *mut c_void, src: *const c_void, bytes: usize, kind: cudaMemcpyKind,
    ) {
        exec_set(exec, node, || linear(dst as u64, src as u64, bytes, kind))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecMemcpyNodeSetParamsToSymbol`.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: cudaGraphExec_t, node: cudaGraphNode_t, symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize,
        kind: cudaMemcpyKind,
    ) {
        exec_set(exec, node, || upload(symbol, src, bytes, offset, kind))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecMemcpyNodeSetParamsFromSymbol`.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: cudaGraphExec_t, node: cudaGraphNode_t, dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize,
        kind: cudaMemcpyKind,
    ) {
        exec_set(exec, node, || download(dst, symbol, bytes, offset, kind))
    }
}
