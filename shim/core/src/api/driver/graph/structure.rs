//! Graphs, their nodes and edges; user objects.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use super::nodes::{named_context, new_condition};
use crate::abi::{
    CUcontext, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUhostFn, CUuserObject, Error, Result, conv,
};
use crate::api::guard;
use crate::driver;
use crate::graph::{self, Edge, Graph, UserObject};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`: the one flag, and required.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the caller's references go to the graph.
const MOVE: c_uint = 1;

/// Nodes that a new node comes after; `data` may be NULL.
///
/// # Safety
/// Both, when not NULL, are arrays of `count` elements.
pub(in crate::api) unsafe fn after(
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<(u64, CUgraphEdgeData)>> {
    // SAFETY: the caller's promise.
    let nodes = unsafe { conv::slice(nodes, count) }?;
    if data.is_null() {
        return Ok(nodes
            .iter()
            .map(|&node| (node as u64, CUgraphEdgeData::default()))
            .collect());
    }
    // SAFETY: as above.
    let data = unsafe { conv::slice(data, count) }?;
    Ok(nodes
        .iter()
        .zip(data)
        .map(|(&node, &data)| (node as u64, data))
        .collect())
}

/// The edges that two arrays of nodes, and perhaps one of annotations, describe.
///
/// # Safety
/// As [`after`].
unsafe fn edges(
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<Edge>> {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (after(from, data, count)?, conv::slice(to, count)?) };
    let edge = |((from, data), &to): ((u64, CUgraphEdgeData), &CUgraphNode)| Edge {
        from,
        to: to as u64,
        data,
    };
    Ok(from.into_iter().zip(to).map(edge).collect())
}

/// Adds dependencies.
///
/// # Safety
/// As [`after`].
pub(in crate::api) unsafe fn add_dependencies(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    // SAFETY: the caller's promise.
    graph.add_edges(&unsafe { edges(from, to, data, count) }?)
}

/// Removes dependencies.
///
/// # Safety
/// As [`after`].
pub(in crate::api) unsafe fn remove_dependencies(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    // SAFETY: the caller's promise.
    graph.remove_edges(&unsafe { edges(from, to, data, count) }?)
}

/// Writes a list into an array of `*count` elements, as recorded: what is left over becomes `rest`, `*count` what was written.
///
/// # Safety
/// `out` is an array of `*count` elements.
unsafe fn fill<T: Copy>(out: *mut T, room: usize, found: &[T], rest: T) -> Result<()> {
    // SAFETY: the caller's promise.
    let out = unsafe { conv::slice_mut(out, room) }?;
    for (index, slot) in out.iter_mut().enumerate() {
        *slot = found.get(index).copied().unwrap_or(rest);
    }
    Ok(())
}

/// Answers with a list of nodes: their number alone when `out` is NULL.
///
/// # Safety
/// `out`, when not NULL, is an array of `*count` elements.
pub(in crate::api) unsafe fn list(out: *mut CUgraphNode, count: *mut usize, found: &[u64]) -> Result<()> {
    if count.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    if out.is_null() {
        return conv::write(count, found.len());
    }
    let room = conv::read(count)?;
    if room == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let found: Vec<CUgraphNode> = found.iter().map(|&node| node as CUgraphNode).collect();
    // SAFETY: the caller's promise.
    unsafe { fill(out, room, &found, core::ptr::null_mut()) }?;
    conv::write(count, room.min(found.len()))
}

/// Where a list of edges goes: the node at one end or both, annotations, the count.
pub(in crate::api) struct EdgeList {
    pub(in crate::api) from: *mut CUgraphNode,
    pub(in crate::api) to: *mut CUgraphNode,
    pub(in crate::api) data: *mut CUgraphEdgeData,
    pub(in crate::api) count: *mut usize,
}

impl EdgeList {
    /// Answers with a list of edges. `ends` says which arrays the call has; all that it has must be there, or none, for the number
    /// alone.
    ///
    /// # Errors
    /// INVALID_VALUE otherwise, LOSSY_QUERY when an edge is annotated and there is no room for that.
    ///
    /// # Safety
    /// The arrays, when not NULL, have `*count` elements.
    pub(in crate::api) unsafe fn answer(self, found: &[Edge], (has_from, has_to): (bool, bool)) -> Result<()> {
        if self.count.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let missing = (has_from && self.from.is_null(), has_to && self.to.is_null());
        if (missing.0 || !has_from) && (missing.1 || !has_to) {
            return conv::write(self.count, found.len());
        }
        let room = conv::read(self.count)?;
        if missing.0 || missing.1 || room == 0 {
            return Err(Error::INVALID_VALUE);
        }
        if self.data.is_null() && found.iter().any(|edge| edge.data != CUgraphEdgeData::default()) {
            return Err(Error::LOSSY_QUERY);
        }
        let nodes =
            |end: fn(&Edge) -> u64| -> Vec<CUgraphNode> { found.iter().map(|edge| end(edge) as CUgraphNode).collect() };
        // SAFETY: the caller's promise.
        unsafe {
            if has_from {
                fill(self.from, room, &nodes(|edge| edge.from), core::ptr::null_mut())?;
            }
            if has_to {
                fill(self.to, room, &nodes(|edge| edge.to), core::ptr::null_mut())?;
            }
            if !self.data.is_null() {
                let data: Vec<_> = found.iter().map(|edge| edge.data).collect();
                fill(self.data, room, &data, CUgraphEdgeData::default())?;
            }
        }
        conv::write(self.count, room.min(found.len()))
    }
}

/// `cuGraphGetEdges`.
///
/// # Safety
/// As [`EdgeList::answer`].
pub(in crate::api) unsafe fn get_edges(graph: CUgraph, list: EdgeList) -> Result<()> {
    let edges = graph::graph(graph as u64)?.edges();
    // SAFETY: the caller's promise.
    unsafe { list.answer(&edges, (true, true)) }
}

/// `cuGraphNodeGetDependencies` and, in the other `direction`, `cuGraphNodeGetDependentNodes`.
///
/// # Safety
/// As [`EdgeList::answer`].
pub(in crate::api) unsafe fn get_neighbours(
    node: CUgraphNode,
    nodes: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
    dependents: bool,
) -> Result<()> {
    let node = graph::node(node as u64)?;
    let graph = node.graph()?;
    let (edges, list) = if dependents {
        let to = EdgeList {
            from: core::ptr::null_mut(),
            to: nodes,
            data,
            count,
        };
        (graph.dependents(node.handle()), to)
    } else {
        let from = EdgeList {
            from: nodes,
            to: core::ptr::null_mut(),
            data,
            count,
        };
        (graph.dependencies(node.handle()), from)
    };
    // SAFETY: the caller's promise.
    unsafe { list.answer(&edges, (!dependents, dependents)) }
}

/// `cuGraphCreate`.
pub(in crate::api) fn create(out: *mut CUgraph, flags: c_uint) -> Result<()> {
    if out.is_null() || flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(out, Graph::new().handle() as CUgraph)
}

/// `cuGraphClone`.
pub(in crate::api) fn clone(out: *mut CUgraph, original: CUgraph) -> Result<()> {
    let original = graph::graph(original as u64)?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(out, original.duplicate()?.handle() as CUgraph)
}

/// `cuGraphNodeFindInClone`.
pub(in crate::api) fn find_in_clone(out: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) -> Result<()> {
    let found = graph::graph(clone as u64)?.clone_of(original as u64)?;
    conv::write(out, found as CUgraphNode)
}

/// `cuGraphDestroyNode`.
pub(in crate::api) fn destroy_node(node: CUgraphNode) -> Result<()> {
    let node = graph::node(node as u64)?;
    node.graph()?.remove(&node)
}

/// `cuGraphNodeGetType`.
pub(in crate::api) fn node_type(node: CUgraphNode) -> Result<CUgraphNodeType> {
    graph::node(node as u64).map(|node| node.operation().node_type())
}

/// `cuGraphDebugDotPrint`. OPERATING_SYSTEM when the file cannot be written.
///
/// # Safety
/// `path`, when not NULL, ends with a NUL.
pub(in crate::api) unsafe fn dot_print(graph: CUgraph, path: *const c_char, flags: c_uint) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    // SAFETY: the caller's promise.
    let path = unsafe { conv::string(path) }?;
    std::fs::write(path, graph.dot(flags)).map_err(|error| {
        log::warn!("cannot write the graph to {path}: {error}");
        Error::OPERATING_SYSTEM
    })
}

/// `cuUserObjectCreate`.
pub(in crate::api) fn create_object(
    out: *mut CUuserObject,
    data: *mut c_void,
    destroy: CUhostFn,
    references: c_uint,
    flags: c_uint,
) -> Result<()> {
    let destroy = destroy.ok_or(Error::INVALID_VALUE)?;
    if out.is_null() || flags != NO_DESTRUCTOR_SYNC || references == 0 || references > c_int::MAX as c_uint {
        return Err(Error::INVALID_VALUE);
    }
    let data = data as usize;
    let handle = UserObject::create(references, move || {
        // SAFETY: the application's function, with its own data.
        guard::host_callback(|| unsafe { destroy(data as *mut c_void) });
    });
    conv::write(out, handle as CUuserObject)
}

/// A count of references.
fn counted(count: c_uint) -> Result<u32> {
    if (1..=c_int::MAX as c_uint).contains(&count) {
        Ok(count)
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// `cuUserObjectRetain`.
pub(in crate::api) fn retain_object(object: CUuserObject, count: c_uint) -> Result<()> {
    graph::user_object(object as u64)?.retain(counted(count)?);
    Ok(())
}

/// `cuUserObjectRelease`.
pub(in crate::api) fn release_object(object: CUuserObject, count: c_uint) -> Result<()> {
    graph::user_object(object as u64)?.release(counted(count)?);
    Ok(())
}

/// `cuGraphRetainUserObject`.
pub(in crate::api) fn graph_retains(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) -> Result<()> {
    let (graph, object) = (graph::graph(graph as u64)?, graph::user_object(object as u64)?);
    let count = counted(count)?;
    if flags & !MOVE != 0 {
        return Err(Error::INVALID_VALUE);
    }
    if flags & MOVE == 0 {
        object.retain(count);
    }
    graph.retain_object(&object, count);
    Ok(())
}

/// `cuGraphReleaseUserObject`. An object that is gone has no references left to give back, which is no error (recorded).
pub(in crate::api) fn graph_releases(graph: CUgraph, object: CUuserObject, count: c_uint) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    let count = counted(count)?;
    if object.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    if let Ok(object) = graph::user_object(object as u64) {
        graph.release_object(&object, count);
    }
    Ok(())
}

driver! {
    /// CUDA Driver API, Graph Management: `cuGraphCreate`.
    fn cuGraphCreate(graph: *mut CUgraph, flags: c_uint) {
        create(graph, flags)
    }

    /// CUDA Driver API, Graph Management: `cuGraphDestroy`.
    fn cuGraphDestroy(graph: CUgraph) {
        graph::graph(graph as u64)?.destroy()
    }

    /// CUDA Driver API, Graph Management: `cuGraphClone`.
    fn cuGraphClone(clone_out: *mut CUgraph, original: CUgraph) {
        clone(clone_out, original)
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeFindInClone`.
    fn cuGraphNodeFindInClone(node: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        find_in_clone(node, original, clone)
    }

    /// CUDA Driver API, Graph Management: `cuGraphDestroyNode`.
    fn cuGraphDestroyNode(node: CUgraphNode) {
        destroy_node(node)
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetType`.
    fn cuGraphNodeGetType(node: CUgraphNode, out: *mut CUgraphNodeType) {
        conv::write(out, node_type(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphGetNodes`.
    fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let found: Vec<u64> = graph::graph(graph as u64)?.nodes().iter().map(|node| node.handle()).collect();
        // SAFETY: the application promises an array of `*count` nodes.
        unsafe { list(nodes, count, &found) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphGetRootNodes`.
    fn cuGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let found = graph::graph(graph as u64)?.roots();
        // SAFETY: as above.
        unsafe { list(nodes, count, &found) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphGetEdges`.
    fn cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) {
        // SAFETY: the application promises arrays of `*count` nodes.
        unsafe { get_edges(graph, EdgeList { from, to, data: core::ptr::null_mut(), count }) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphGetEdges_v2`.
    fn cuGraphGetEdges_v2(
        graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { get_edges(graph, EdgeList { from, to, data, count }) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetDependencies`.
    fn cuGraphNodeGetDependencies(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize) {
        // SAFETY: as above.
        unsafe { get_neighbours(node, nodes, core::ptr::null_mut(), count, false) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetDependencies_v2`.
    fn cuGraphNodeGetDependencies_v2(
        node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { get_neighbours(node, nodes, data, count, false) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetDependentNodes`.
    fn cuGraphNodeGetDependentNodes(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize) {
        // SAFETY: as above.
        unsafe { get_neighbours(node, nodes, core::ptr::null_mut(), count, true) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetDependentNodes_v2`.
    fn cuGraphNodeGetDependentNodes_v2(
        node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize,
    ) {
        // SAFETY: as above.
        unsafe { get_neighbours(node, nodes, data, count, true) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddDependencies`.
    fn cuGraphAddDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize) {
        // SAFETY: the application promises arrays of `count` nodes.
        unsafe { add_dependencies(graph, from, to, core::ptr::null(), count) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddDependencies_v2`.
    fn cuGraphAddDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize,
    ) {
        // SAFETY: as above.
        unsafe { add_dependencies(graph, from, to, data, count) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphRemoveDependencies`.
    fn cuGraphRemoveDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize) {
        // SAFETY: as above.
        unsafe { remove_dependencies(graph, from, to, core::ptr::null(), count) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphRemoveDependencies_v2`.
    fn cuGraphRemoveDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize,
    ) {
        // SAFETY: as above.
        unsafe { remove_dependencies(graph, from, to, data, count) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphDebugDotPrint`.
    fn cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint) {
        // SAFETY: the application promises a C string.
        unsafe { dot_print(graph, path, flags) }
    }

    /// CUDA Driver API, Graph Management: `cuUserObjectCreate`.
    fn cuUserObjectCreate(
        object: *mut CUuserObject, data: *mut c_void, destroy: CUhostFn, references: c_uint, flags: c_uint,
    ) {
        create_object(object, data, destroy, references, flags)
    }

    /// CUDA Driver API, Graph Management: `cuUserObjectRetain`.
    fn cuUserObjectRetain(object: CUuserObject, count: c_uint) {
        retain_object(object, count)
    }

    /// CUDA Driver API, Graph Management: `cuUserObjectRelease`.
    fn cuUserObjectRelease(object: CUuserObject, count: c_uint) {
        release_object(object, count)
    }

    /// CUDA Driver API, Graph Management: `cuGraphRetainUserObject`.
    fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) {
        graph_retains(graph, object, count, flags)
    }

    /// CUDA Driver API, Graph Management: `cuGraphReleaseUserObject`.
    fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint) {
        graph_releases(graph, object, count)
    }

    /// CUDA Driver API, Graph Management: `cuGraphConditionalHandleCreate`.
    fn cuGraphConditionalHandleCreate(
        handle: *mut c_ulonglong, graph: CUgraph, context: CUcontext, initial: c_uint, flags: c_uint,
    ) {
        new_condition(handle, graph, named_context(context)?, initial, flags)
    }
}
