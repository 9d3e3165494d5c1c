//! Stream Management: stream capture.

use core::ffi::{c_int, c_uint, c_ulonglong};

use super::stream::resolve;
use crate::abi::{
    CUgraphEdgeData, CUstreamCaptureMode, CUstreamCaptureStatus, conv, cudaGraph_t, cudaGraphNode_t, cudaStream_t,
};
use crate::api::driver::capture::{self as driver, Answer};
use crate::graph::capture;
use crate::{runtime, streamed};

runtime! {
    /// CUDA Runtime API, Stream Management: `cudaThreadExchangeStreamCaptureMode`.
    fn cudaThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        driver::exchange(mode)
    }
}

streamed! { runtime
    /// CUDA Runtime API, Stream Management: `cudaStreamBeginCapture`.
    fn cudaStreamBeginCapture(stream: cudaStream_t, mode: c_int), fn cudaStreamBeginCapture_ptsz(..) |default| {
        capture::begin(&*resolve(stream, default)?, CUstreamCaptureMode(mode), None)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamBeginCaptureToGraph`.
    fn cudaStreamBeginCaptureToGraph(
        stream: cudaStream_t, graph: cudaGraph_t, nodes: *const cudaGraphNode_t, data: *const CUgraphEdgeData, count: usize,
        mode: c_int,
    ), fn cudaStreamBeginCaptureToGraph_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        // SAFETY: the application promises arrays of `count` elements.
        unsafe { driver::begin_to_graph(&stream, graph, nodes, data, count, CUstreamCaptureMode(mode)) }
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamEndCapture`.
    fn cudaStreamEndCapture(stream: cudaStream_t, graph: *mut cudaGraph_t), fn cudaStreamEndCapture_ptsz(..) |default| {
        driver::end(&*resolve(stream, default)?, graph)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamIsCapturing`.
    fn cudaStreamIsCapturing(stream: cudaStream_t, out: *mut CUstreamCaptureStatus),
    fn cudaStreamIsCapturing_ptsz(..) |default| {
        conv::write(out, driver::status(&*resolve(stream, default)?)?)
    }

    /// CUDA Runtime API before 12.0: `cudaStreamGetCaptureInfo`.
    fn cudaStreamGetCaptureInfo(stream: cudaStream_t, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong),
    fn cudaStreamGetCaptureInfo_ptsz(..) |default| {
        let answer = Answer::short(out, id);
        driver::info(&*resolve(stream, default)?, &answer)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetCaptureInfo_v2`.
    fn cudaStreamGetCaptureInfo_v2(
        stream: cudaStream_t, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong, graph: *mut cudaGraph_t,
        nodes: *mut *const cudaGraphNode_t, count: *mut usize,
    ), fn cudaStreamGetCaptureInfo_v2_ptsz(..) |default| {
        let answer = Answer { status: out, id, graph, nodes, data: core::ptr::null_mut(), count };
        driver::info(&*resolve(stream, default)?, &answer)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetCaptureInfo_v3`.
    fn cudaStreamGetCaptureInfo_v3(
        stream: cudaStream_t, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong, graph: *mut cudaGraph_t,
        nodes: *mut *const cudaGraphNode_t, data: *mut *const CUgraphEdgeData, count: *mut usize,
    ), fn cudaStreamGetCaptureInfo_v3_ptsz(..) |default| {
        driver::info(&*resolve(stream, default)?, &Answer { status: out, id, graph, nodes, data, count })
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamUpdateCaptureDependencies`.
    fn cudaStreamUpdateCaptureDependencies(
        stream: cudaStream_t, nodes: *mut cudaGraphNode_t, count: usize, flags: c_uint,
    ), fn cudaStreamUpdateCaptureDependencies_ptsz(..) |default| {
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { driver::update(&*resolve(stream, default)?, nodes, core::ptr::null(), count, flags) }
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamUpdateCaptureDependencies_v2`.
    fn cudaStreamUpdateCaptureDependencies_v2(
        stream: cudaStream_t, nodes: *mut cudaGraphNode_t, data: *const CUgraphEdgeData, count: usize, flags: c_uint,
    ), fn cudaStreamUpdateCaptureDependencies_v2_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { driver::update(&*resolve(stream, default)?, nodes, data, count, flags) }
    }
}
