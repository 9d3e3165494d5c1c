//! Graphs, their nodes and edges; user objects; memory that graphs hold.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::abi::{
    CUgraphEdgeData, CUgraphNodeType, CUhostFn, CUuserObject, Error, conv, cudaGraph_t, cudaGraphNode_t,
    cudaGraphNodeType,
};
use crate::api::driver::graph::memory;
use crate::api::driver::graph::nodes;
use crate::api::driver::graph::structure::{self, EdgeList};
use crate::device::context;
use crate::graph;
use crate::runtime;

runtime! {
    /// CUDA Runtime API, Graph Management: `cudaGraphCreate`.
    fn cudaGraphCreate(graph: *mut cudaGraph_t, flags: c_uint) {
        structure::create(graph, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphDestroy`.
    fn cudaGraphDestroy(graph: cudaGraph_t) {
        graph::graph(graph as u64)?.destroy()
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphClone`.
    fn cudaGraphClone(clone: *mut cudaGraph_t, original: cudaGraph_t) {
        structure::clone(clone, original)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeFindInClone`.
    fn cudaGraphNodeFindInClone(node: *mut cudaGraphNode_t, original: cudaGraphNode_t, clone: cudaGraph_t) {
        structure::find_in_clone(node, original, clone)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphDestroyNode`.
    fn cudaGraphDestroyNode(node: cudaGraphNode_t) {
        structure::destroy_node(node)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetType`. Conditional nodes and memory operations have other numbers than in
    /// the driver API, whose memory operations the runtime does not know: as recorded it answers with the driver's number.
    fn cudaGraphNodeGetType(node: cudaGraphNode_t, out: *mut cudaGraphNodeType) {
        match structure::node_type(node)? {
            // The runtime API has no name for these nodes (recorded).
            CUgraphNodeType::BATCH_MEM_OP | CUgraphNodeType::CONDITIONAL => Err(Error::UNKNOWN),
            other => conv::write(out, cudaGraphNodeType(other.0)),
        }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphGetNodes`.
    fn cudaGraphGetNodes(graph: cudaGraph_t, nodes: *mut cudaGraphNode_t, count: *mut usize) {
        let found: Vec<u64> = graph::graph(graph as u64)?.nodes().iter().map(|node| node.handle()).collect();
        // SAFETY: the application promises an array of `*count` nodes.
        unsafe { structure::list(nodes, count, &found) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphGetRootNodes`.
    fn cudaGraphGetRootNodes(graph: cudaGraph_t, nodes: *mut cudaGraphNode_t, count: *mut usize) {
        let found = graph::graph(graph as u64)?.roots();
        // SAFETY: as above.
        unsafe { structure::list(nodes, count, &found) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphGetEdges`.
    fn cudaGraphGetEdges(graph: cudaGraph_t, from: *mut cudaGraphNode_t, to: *mut cudaGraphNode_t, count: *mut usize) {
        // SAFETY: the application promises arrays of `*count` nodes.
        unsafe { structure::get_edges(graph, EdgeList { from, to, data: core::ptr::null_mut(), count }) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphGetEdges_v2`.
    fn cudaGraphGetEdges_v2(
        graph: cudaGraph_t, from: *mut cudaGraphNode_t, to: *mut cudaGraphNode_t, data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::get_edges(graph, EdgeList { from, to, data, count }) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetDependencies`.
    fn cudaGraphNodeGetDependencies(node: cudaGraphNode_t, nodes: *mut cudaGraphNode_t, count: *mut usize) {
        // SAFETY: as above.
        unsafe { structure::get_neighbours(node, nodes, core::ptr::null_mut(), count, false) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetDependencies_v2`.
    fn cudaGraphNodeGetDependencies_v2(
        node: cudaGraphNode_t, nodes: *mut cudaGraphNode_t, data: *mut CUgraphEdgeData, count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::get_neighbours(node, nodes, data, count, false) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetDependentNodes`.
    fn cudaGraphNodeGetDependentNodes(node: cudaGraphNode_t, nodes: *mut cudaGraphNode_t, count: *mut usize) {
        // SAFETY: as above.
        unsafe { structure::get_neighbours(node, nodes, core::ptr::null_mut(), count, true) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetDependentNodes_v2`.
    fn cudaGraphNodeGetDependentNodes_v2(
        node: cudaGraphNode_t, nodes: *mut cudaGraphNode_t, data: *mut CUgraphEdgeData, count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::get_neighbours(node, nodes, data, count, true) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddDependencies`.
    fn cudaGraphAddDependencies(
        graph: cudaGraph_t, from: *const cudaGraphNode_t, to: *const cudaGraphNode_t, count: usize,
    ) {
        // SAFETY: the application promises arrays of `count` nodes.
        unsafe { structure::add_dependencies(graph, from, to, core::ptr::null(), count) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddDependencies_v2`.
    fn cudaGraphAddDependencies_v2(
        graph: cudaGraph_t, from: *const cudaGraphNode_t, to: *const cudaGraphNode_t, data: *const CUgraphEdgeData,
        count: usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::add_dependencies(graph, from, to, data, count) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphRemoveDependencies`.
    fn cudaGraphRemoveDependencies(
        graph: cudaGraph_t, from: *const cudaGraphNode_t, to: *const cudaGraphNode_t, count: usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::remove_dependencies(graph, from, to, core::ptr::null(), count) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphRemoveDependencies_v2`.
    fn cudaGraphRemoveDependencies_v2(
        graph: cudaGraph_t, from: *const cudaGraphNode_t, to: *const cudaGraphNode_t, data: *const CUgraphEdgeData,
        count: usize,
    ) {
        // SAFETY: as above.
        unsafe { structure::remove_dependencies(graph, from, to, data, count) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphDebugDotPrint`.
    fn cudaGraphDebugDotPrint(graph: cudaGraph_t, path: *const c_char, flags: c_uint) {
        // SAFETY: the application promises a C string.
        unsafe { structure::dot_print(graph, path, flags) }
    }

    /// CUDA Runtime API, Graph Management: `cudaUserObjectCreate`.
    fn cudaUserObjectCreate(
        object: *mut CUuserObject, data: *mut c_void, destroy: CUhostFn, references: c_uint, flags: c_uint,
    ) {
        structure::create_object(object, data, destroy, references, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaUserObjectRetain`.
    fn cudaUserObjectRetain(object: CUuserObject, count: c_uint) {
        structure::retain_object(object, count)
    }

    /// CUDA Runtime API, Graph Management: `cudaUserObjectRelease`.
    fn cudaUserObjectRelease(object: CUuserObject, count: c_uint) {
        structure::release_object(object, count)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphRetainUserObject`.
    fn cudaGraphRetainUserObject(graph: cudaGraph_t, object: CUuserObject, count: c_uint, flags: c_uint) {
        structure::graph_retains(graph, object, count, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphReleaseUserObject`.
    fn cudaGraphReleaseUserObject(graph: cudaGraph_t, object: CUuserObject, count: c_uint) {
        structure::graph_releases(graph, object, count)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphConditionalHandleCreate`.
    fn cudaGraphConditionalHandleCreate(
        handle: *mut c_ulonglong, graph: cudaGraph_t, initial: c_uint, flags: c_uint,
    ) {
        nodes::new_condition(handle, graph, context::runtime_current()?, initial, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaDeviceGetGraphMemAttribute`.
    fn cudaDeviceGetGraphMemAttribute(device: c_int, id: c_int, value: *mut c_void) {
        conv::write(value.cast::<u64>(), memory::attribute(device, id)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaDeviceSetGraphMemAttribute`.
    fn cudaDeviceSetGraphMemAttribute(device: c_int, id: c_int, value: *mut c_void) {
        memory::set_attribute(device, id, conv::read(value.cast::<u64>())?)
    }

    /// CUDA Runtime API, Graph Management: `cudaDeviceGraphMemTrim`.
    fn cudaDeviceGraphMemTrim(device: c_int) {
        memory::trim(device)
    }
}
