//! Stream Management: stream capture.

use core::ffi::{c_int, c_uint, c_ulonglong};

use super::graph::structure::after as graph_after;
use super::stream::resolve;
use crate::abi::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus, Error, Result, conv,
};
use crate::graph::{self, capture};
use crate::stream::Stream;
use crate::{driver, streamed};

/// `CU_STREAM_ADD_CAPTURE_DEPENDENCIES`, `CU_STREAM_SET_CAPTURE_DEPENDENCIES`.
const ADD: c_uint = 0;
const SET: c_uint = 1;

/// Begins a capture into an existing graph.
///
/// # Safety
/// As [`graph_after`].
pub(in crate::api) unsafe fn begin_to_graph(
    stream: &Stream,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    mode: CUstreamCaptureMode,
) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    // SAFETY: the caller's promise.
    let after = unsafe { graph_after(nodes, data, count) }?;
    let after = after.into_iter().map(|(node, _)| node).collect();
    capture::begin(stream, mode, Some((graph, after)))
}

/// Ends a capture. `graph` may be NULL for a capture into a graph that is known; otherwise the new graph is lost (recorded).
pub(in crate::api) fn end(stream: &Stream, graph: *mut CUgraph) -> Result<()> {
    let ended = capture::end(stream);
    let handle = ended.as_ref().map_or(0, |graph| graph.handle());
    conv::write_if(graph, handle as CUgraph);
    ended.map(|_| ())
}

/// Whether a stream is captured.
pub(in crate::api) fn status(stream: &Stream) -> Result<CUstreamCaptureStatus> {
    Ok(match capture::status(stream)? {
        None => CUstreamCaptureStatus::NONE,
        Some(true) => CUstreamCaptureStatus::ACTIVE,
        Some(false) => CUstreamCaptureStatus::INVALIDATED,
    })
}

/// Where the answers about a capture go. All but the status may be NULL.
pub(in crate::api) struct Answer {
    pub(in crate::api) status: *mut CUstreamCaptureStatus,
    pub(in crate::api) id: *mut c_ulonglong,
    pub(in crate::api) graph: *mut CUgraph,
    pub(in crate::api) nodes: *mut *const CUgraphNode,
    pub(in crate::api) data: *mut *const CUgraphEdgeData,
    pub(in crate::api) count: *mut usize,
}

impl Answer {
    /// The answer of the calls that ask for the status and the id alone.
    pub(in crate::api) fn short(status: *mut CUstreamCaptureStatus, id: *mut c_ulonglong) -> Self {
        Self {
            status,
            id,
            graph: core::ptr::null_mut(),
            nodes: core::ptr::null_mut(),
            data: core::ptr::null_mut(),
            count: core::ptr::null_mut(),
        }
    }
}

/// No dependency of a capture is annotated: plain ones for every node, in an array that stays.
fn plain_edges(count: usize) -> *const CUgraphEdgeData {
    const MOST: usize = 4096;
    static EDGES: [CUgraphEdgeData; MOST] = [CUgraphEdgeData {
        from_port: 0,
        to_port: 0,
        r#type: 0,
        reserved: [0; 5],
    }; MOST];
    if count <= MOST {
        EDGES.as_ptr()
    } else {
        // Never in practice; the application may hold it for ever.
        vec![CUgraphEdgeData::default(); count].leak().as_ptr()
    }
}

/// What is known about the capture of a stream.
pub(in crate::api) fn info(stream: &Stream, answer: &Answer) -> Result<()> {
    if answer.status.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(answer.status, status(stream)?)?;
    if let Some(info) = capture::info(stream, !answer.nodes.is_null()) {
        conv::write_if(answer.id, info.id);
        conv::write_if(answer.graph, info.graph as CUgraph);
        conv::write_if(answer.nodes, info.after.cast());
        conv::write_if(answer.data, plain_edges(info.count));
        conv::write_if(answer.count, info.count);
    }
    Ok(())
}

/// Changes what the next operation of a captured stream depends on.
///
/// # Safety
/// As [`graph_after`].
pub(in crate::api) unsafe fn update(
    stream: &Stream,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    flags: c_uint,
) -> Result<()> {
    capture::update_dependencies(stream, || {
        if flags != ADD && flags != SET {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        let nodes = unsafe { graph_after(nodes, data, count) }?;
        Ok((nodes.into_iter().map(|(node, _)| node).collect(), flags == SET))
    })
}

/// `cuThreadExchangeStreamCaptureMode`.
pub(in crate::api) fn exchange(mode: *mut CUstreamCaptureMode) -> Result<()> {
    let new = conv::read(mode)?;
    conv::write(mode, capture::exchange_mode(new))
}

driver! {
    /// CUDA Driver API, Stream Management: `cuThreadExchangeStreamCaptureMode`.
    fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        exchange(mode)
    }
}

streamed! { driver
    /// CUDA Driver API before 10.1: `cuStreamBeginCapture`, in global mode.
    fn cuStreamBeginCapture(stream: CUstream), fn cuStreamBeginCapture_ptsz(..) |default| {
        capture::begin(&*resolve(stream, default)?, CUstreamCaptureMode::GLOBAL, None)
    }

    /// CUDA Driver API, Stream Management: `cuStreamBeginCapture`.
    fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_int), fn cuStreamBeginCapture_v2_ptsz(..) |default| {
        capture::begin(&*resolve(stream, default)?, CUstreamCaptureMode(mode), None)
    }

    /// CUDA Driver API, Stream Management: `cuStreamBeginCaptureToGraph`.
    fn cuStreamBeginCaptureToGraph(
        stream: CUstream, graph: CUgraph, nodes: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize, mode: c_int,
    ), fn cuStreamBeginCaptureToGraph_ptsz(..) |default| {
        // SAFETY: the application promises arrays of `count` elements.
        unsafe { begin_to_graph(&*resolve(stream, default)?, graph, nodes, data, count, CUstreamCaptureMode(mode)) }
    }

    /// CUDA Driver API, Stream Management: `cuStreamEndCapture`.
    fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph), fn cuStreamEndCapture_ptsz(..) |default| {
        end(&*resolve(stream, default)?, graph)
    }

    /// CUDA Driver API, Stream Management: `cuStreamIsCapturing`.
    fn cuStreamIsCapturing(stream: CUstream, out: *mut CUstreamCaptureStatus), fn cuStreamIsCapturing_ptsz(..) |default| {
        conv::write(out, status(&*resolve(stream, default)?)?)
    }

    /// CUDA Driver API before 12.0: `cuStreamGetCaptureInfo`.
    fn cuStreamGetCaptureInfo(stream: CUstream, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong),
    fn cuStreamGetCaptureInfo_ptsz(..) |default| {
        let answer = Answer::short(out, id);
        info(&*resolve(stream, default)?, &answer)
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetCaptureInfo_v2`.
    fn cuStreamGetCaptureInfo_v2(
        stream: CUstream, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, count: *mut usize,
    ), fn cuStreamGetCaptureInfo_v2_ptsz(..) |default| {
        let answer = Answer { status: out, id, graph, nodes, data: core::ptr::null_mut(), count };
        info(&*resolve(stream, default)?, &answer)
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetCaptureInfo_v3`.
    fn cuStreamGetCaptureInfo_v3(
        stream: CUstream, out: *mut CUstreamCaptureStatus, id: *mut c_ulonglong, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize,
    ), fn cuStreamGetCaptureInfo_v3_ptsz(..) |default| {
        info(&*resolve(stream, default)?, &Answer { status: out, id, graph, nodes, data, count })
    }

    /// CUDA Driver API, Stream Management: `cuStreamUpdateCaptureDependencies`.
    fn cuStreamUpdateCaptureDependencies(stream: CUstream, nodes: *mut CUgraphNode, count: usize, flags: c_uint),
    fn cuStreamUpdateCaptureDependencies_ptsz(..) |default| {
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { update(&*resolve(stream, default)?, nodes, core::ptr::null(), count, flags) }
    }

    /// CUDA Driver API, Stream Management: `cuStreamUpdateCaptureDependencies_v2`.
    fn cuStreamUpdateCaptureDependencies_v2(
        stream: CUstream, nodes: *mut CUgraphNode, data: *const CUgraphEdgeData, count: usize, flags: c_uint,
    ), fn cuStreamUpdateCaptureDependencies_v2_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { update(&*resolve(stream, default)?, nodes, data, count, flags) }
    }
}
