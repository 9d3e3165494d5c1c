//! Adding nodes; their parameters.

use core::ffi::{c_int, c_uint, c_ulonglong};

use super::params::*;
use super::structure::after;
use crate::abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS, CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUlaunchAttributeValue, Error, Plain, Result, conv,
};
use crate::device::Context;
use crate::driver;
use crate::graph::condition::{self, Condition, Conditional, Meaning};
use crate::graph::{self, Operation};

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`: the one flag of a handle for conditional nodes.
const ASSIGN_DEFAULT: c_uint = 1;

/// Where a new node's handle goes, its graph, and what it comes after.
pub(in crate::api) struct New {
    pub(in crate::api) out: *mut CUgraphNode,
    pub(in crate::api) graph: CUgraph,
    pub(in crate::api) after: *const CUgraphNode,
    pub(in crate::api) data: *const CUgraphEdgeData,
    pub(in crate::api) count: usize,
}

impl New {
    /// Adds the node that `make` describes.
    ///
    /// # Errors
    /// INVALID_VALUE for a bad graph, handle or dependency, else those of `make`.
    ///
    /// # Safety
    /// `after`, and `data` when not NULL, are arrays of `count` elements.
    pub(in crate::api) unsafe fn add(self, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
        let graph = graph::graph(self.graph as u64)?;
        if self.out.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        let after = unsafe { after(self.after, self.data, self.count) }?;
        let node = graph.add(make()?, &after)?;
        conv::write(self.out, node.handle() as CUgraphNode)
    }

    /// As [`New::add`]; gives what the application is told: an allocation's address, the place of a conditional node's bodies.
    ///
    /// # Errors
    /// Those of [`New::add`].
    ///
    /// # Safety
    /// As [`New::add`].
    pub(in crate::api) unsafe fn add_telling(
        self,
        make: impl FnOnce() -> Result<Operation>,
    ) -> Result<Option<CUdeviceptr>> {
        let mut address = None;
        // SAFETY: the caller's promise.
        unsafe {
            self.add(|| {
                let operation = make()?;
                match &operation {
                    Operation::Alloc(block) => address = Some(block.address()),
                    Operation::Conditional(conditional) => address = Some(conditional.handles() as u64),
                    _ => {}
                }
                Ok(operation)
            })?;
        }
        Ok(address)
    }
}

/// A child graph: a copy, or the graph itself with `ownership` 1.
pub(in crate::api) fn child(parent: CUgraph, params: &CUDA_CHILD_GRAPH_NODE_PARAMS) -> Result<Operation> {
    let child = graph::graph(params.graph as u64)?;
    // NVIDIA's library crashes for a graph in itself.
    if params.graph == parent {
        return Err(Error::INVALID_VALUE);
    }
    match params.ownership {
        0 => child.embed(),
        1 => child.take_over(),
        _ => Err(Error::INVALID_VALUE),
    }
    .map(Operation::Child)
}

/// A context that must be named.
///
/// # Errors
/// DEVICE_UNINITIALIZED for NULL (recorded), else as [`Context::from_handle`].
pub(in crate::api) fn named_context(handle: CUcontext) -> Result<&'static Context> {
    if handle.is_null() {
        return Err(Error::DEVICE_UNINITIALIZED);
    }
    Context::from_handle(handle)
}

/// A handle for conditional nodes of a graph.
///
/// # Errors
/// INVALID_VALUE for no graph and for unknown flags, else as [`Condition::new`].
pub(in crate::api) fn new_condition(
    out: *mut c_ulonglong,
    graph: CUgraph,
    context: &'static Context,
    initial: c_uint,
    flags: c_uint,
) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    if out.is_null() || flags > ASSIGN_DEFAULT {
        return Err(Error::INVALID_VALUE);
    }
    let condition = Condition::new(context, initial, flags == ASSIGN_DEFAULT)?;
    conv::write(out, condition.handle())?;
    graph.add_condition(condition);
    Ok(())
}

/// A conditional node with empty bodies.
///
/// # Errors
/// INVALID_VALUE for a handle that is none, of another context, or used, and as [`Meaning::new`].
pub(in crate::api) fn conditional(context: &Context, handle: u64, kind: c_uint, bodies: c_uint) -> Result<Operation> {
    let meaning = Meaning::new(kind, bodies)?;
    let condition = condition::condition(handle)?;
    if condition.owner() != context.streams()?.id() {
        return Err(Error::INVALID_VALUE);
    }
    Conditional::new(condition, meaning, bodies).map(Operation::Conditional)
}

/// The graph that a child node owns.
pub(in crate::api) fn child_at(node: CUgraphNode) -> Result<CUgraph> {
    match graph::node(node as u64)?.operation() {
        Operation::Child(child) => Ok(child.handle() as CUgraph),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Replaces a node's parameters; the node must be of that type.
pub(in crate::api) fn set(node: CUgraphNode, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
    let node = graph::node(node as u64)?;
    node.set(make()?)
}

/// `cuGraphKernelNodeGetAttribute`: those of which nothing is kept read as zero.
pub(in crate::api) fn attribute(node: CUgraphNode, id: c_int) -> Result<CUlaunchAttributeValue> {
    let kernel = kernel_at(node)?;
    let mut value = CUlaunchAttributeValue::zeroed();
    match id {
        2 => value.cooperative = kernel.cooperative.into(),
        8 => value.priority = kernel.priority,
        0..=14 => {}
        _ => return Err(Error::INVALID_VALUE),
    }
    Ok(value)
}

/// `cuGraphKernelNodeSetAttribute`: hints are accepted without effect.
pub(in crate::api) fn set_attribute(node: CUgraphNode, id: c_int, value: &CUlaunchAttributeValue) -> Result<()> {
    let mut kernel = kernel_at(node)?;
    // SAFETY: every bit pattern of the union's members is a value.
    unsafe {
        match id {
            2 => kernel.cooperative = value.cooperative != 0,
            8 => kernel.priority = value.priority,
            4 if [value.clusterDim.x, value.clusterDim.y, value.clusterDim.z]
                .iter()
                .any(|&n| n > 1) =>
            {
                return Err(Error::INVALID_CLUSTER_SIZE);
            }
            0..=14 => {}
            _ => return Err(Error::INVALID_VALUE),
        }
    }
    set(node, || Ok(Operation::Kernel(kernel)))
}

/// `cuGraphKernelNodeCopyAttributes`.
pub(in crate::api) fn copy_attributes(dst: CUgraphNode, src: CUgraphNode) -> Result<()> {
    let (mut kernel, from) = (kernel_at(dst)?, kernel_at(src)?);
    (kernel.cooperative, kernel.priority) = (from.cooperative, from.priority);
    set(dst, || Ok(Operation::Kernel(kernel)))
}

/// The longer form of a kernel's parameters.
fn widened(p: &CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: p.func,
        gridDimX: p.gridDimX,
        gridDimY: p.gridDimY,
        gridDimZ: p.gridDimZ,
        blockDimX: p.blockDimX,
        blockDimY: p.blockDimY,
        blockDimZ: p.blockDimZ,
        sharedMemBytes: p.sharedMemBytes,
        kernelParams: p.kernelParams,
        extra: p.extra,
        ..Plain::zeroed()
    }
}

/// The kernel that a parameter structure describes.
///
/// # Safety
/// The parameters are what the kernel expects.
pub(super) unsafe fn kernel_operation(params: *const CUDA_KERNEL_NODE_PARAMS) -> Result<Operation> {
    // SAFETY: the caller's promise.
    unsafe { kernel(&conv::read(params)?) }.map(Operation::Kernel)
}

/// As [`kernel_operation`], of the shorter form.
///
/// # Safety
/// As [`kernel_operation`].
pub(super) unsafe fn kernel_operation_v1(params: *const CUDA_KERNEL_NODE_PARAMS_v1) -> Result<Operation> {
    // SAFETY: the caller's promise.
    unsafe { kernel(&widened(&conv::read(params)?)) }.map(Operation::Kernel)
}

/// The operation of a structure that can be any. NOT_SUPPORTED for the types that are refused.
///
/// # Safety
/// Pointers in it are what the type's own call asks for.
pub(super) unsafe fn operation(parent: CUgraph, params: *const CUgraphNodeParams) -> Result<Operation> {
    type Type = CUgraphNodeType;
    let p = conv::read(params)?;
    if p.reserved0 != [0; 3] || p.reserved2 != 0 {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: every bit pattern of the union's members is a value; the caller's promise for what they point to.
    unsafe {
        Ok(match p.r#type {
            Type::KERNEL => Operation::Kernel(kernel(&p.u.kernel)?),
            Type::MEMCPY => Operation::Copy(copy(&p.u.memcpy.copyParams)?),
            Type::MEMSET => Operation::Fill(fill(&CUDA_MEMSET_NODE_PARAMS {
                dst: p.u.memset.dst,
                pitch: p.u.memset.pitch,
                value: p.u.memset.value,
                elementSize: p.u.memset.elementSize,
                width: p.u.memset.width,
                height: p.u.memset.height,
            })?),
            Type::HOST => Operation::Host(host(&p.u.host)?),
            Type::GRAPH => child(parent, &p.u.graph)?,
            Type::EMPTY if p.u.reserved1 != [0; 29] => return Err(Error::INVALID_VALUE),
            Type::EMPTY => Operation::Empty,
            Type::WAIT_EVENT => Operation::WaitEvent(event(p.u.event.event)?),
            Type::EVENT_RECORD => Operation::RecordEvent(event(p.u.event.event)?),
            Type::MEM_ALLOC => Operation::Alloc(allocation(&p.u.alloc)?),
            Type::MEM_FREE => Operation::Free(freed(p.u.free.dptr)?),
            Type::BATCH_MEM_OP => Operation::MemOps(mem_ops(&p.u.memOp)?),
            Type::CONDITIONAL => {
                let CUDA_CONDITIONAL_NODE_PARAMS {
                    handle,
                    r#type,
                    size,
                    ctx,
                    ..
                } = p.u.conditional;
                conditional(named_context(ctx)?, handle, r#type, size)?
            }
            Type::EXT_SEMAS_SIGNAL | Type::EXT_SEMAS_WAIT => return Err(Error::NOT_SUPPORTED),
            _ => return Err(Error::INVALID_VALUE),
        })
    }
}

/// As [`operation`], to replace a node's. Conditional nodes stay as they are (recorded).
///
/// # Errors
/// NOT_SUPPORTED for those, else as [`operation`].
///
/// # Safety
/// As [`operation`].
pub(super) unsafe fn changed(params: *const CUgraphNodeParams) -> Result<Operation> {
    if conv::read(params)?.r#type == CUgraphNodeType::CONDITIONAL {
        return Err(Error::NOT_SUPPORTED);
    }
    // SAFETY: the caller's promise.
    unsafe { operation(core::ptr::null_mut(), params) }
}

/// Adds a node of any type; an allocation's address, and where a conditional node's bodies are, is written back.
///
/// # Safety
/// As [`operation`] and [`New::add`].
unsafe fn add_any(new: New, params: *mut CUgraphNodeParams) -> Result<()> {
    let parent = new.graph;
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(address) = new.add_telling(|| operation(parent, params))? {
            match (*params).r#type {
                CUgraphNodeType::CONDITIONAL => (*params).u.conditional.phGraph_out = address as *mut CUgraph,
                _ => (*params).u.alloc.dptr = address,
            }
        }
    }
    Ok(())
}

driver! {
    /// CUDA Driver API, Graph Management: `cuGraphAddEmptyNode`.
    fn cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize) {
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { New { out: node, graph, after, data: core::ptr::null(), count }.add(|| Ok(Operation::Empty)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddKernelNode` before 12.0.
    fn cuGraphAddKernelNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        // SAFETY: as above, and the parameters of the kernel.
        unsafe { New { out: node, graph, after, data: core::ptr::null(), count }.add(|| kernel_operation_v1(params)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddKernelNode_v2`.
    fn cuGraphAddKernelNode_v2(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) {
        // SAFETY: as above.
        unsafe { New { out: node, graph, after, data: core::ptr::null(), count }.add(|| kernel_operation(params)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeGetParams` before 12.0.
    fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v1) {
        let p = describe_kernel(&kernel_at(node)?)?;
        conv::write(params, CUDA_KERNEL_NODE_PARAMS_v1 {
            func: p.func,
            gridDimX: p.gridDimX,
            gridDimY: p.gridDimY,
            gridDimZ: p.gridDimZ,
            blockDimX: p.blockDimX,
            blockDimY: p.blockDimY,
            blockDimZ: p.blockDimZ,
            sharedMemBytes: p.sharedMemBytes,
            kernelParams: p.kernelParams,
            extra: p.extra,
        })
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeGetParams_v2`.
    fn cuGraphKernelNodeGetParams_v2(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS) {
        conv::write(params, describe_kernel(&kernel_at(node)?)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeSetParams` before 12.0.
    fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        // SAFETY: the application promises the parameters of the kernel.
        set(node, || unsafe { kernel_operation_v1(params) })
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeSetParams_v2`.
    fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS) {
        // SAFETY: as above.
        set(node, || unsafe { kernel_operation(params) })
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeGetAttribute`.
    fn cuGraphKernelNodeGetAttribute(node: CUgraphNode, id: c_int, value: *mut CUlaunchAttributeValue) {
        conv::write(value, attribute(node, id)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeSetAttribute`.
    fn cuGraphKernelNodeSetAttribute(node: CUgraphNode, id: c_int, value: *const CUlaunchAttributeValue) {
        set_attribute(node, id, &conv::read(value)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphKernelNodeCopyAttributes`.
    fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode) {
        copy_attributes(dst, src)
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddMemcpyNode`.
    fn cuGraphAddMemcpyNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_MEMCPY3D,
        context: CUcontext,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { new.add(|| {
            node_context(context)?;
            copy(&conv::read(params)?).map(Operation::Copy)
        }) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemcpyNodeGetParams`.
    fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMCPY3D) {
        conv::write(params, copy_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemcpyNodeSetParams`.
    fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMCPY3D) {
        set(node, || copy(&conv::read(params)?).map(Operation::Copy))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddMemsetNode`.
    fn cuGraphAddMemsetNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| {
            node_context(context)?;
            fill(&conv::read(params)?).map(Operation::Fill)
        }) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemsetNodeGetParams`.
    fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS) {
        conv::write(params, fill_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemsetNodeSetParams`.
    fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS) {
        set(node, || fill(&conv::read(params)?).map(Operation::Fill))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddHostNode`.
    fn cuGraphAddHostNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_HOST_NODE_PARAMS,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| host(&conv::read(params)?).map(Operation::Host)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphHostNodeGetParams`.
    fn cuGraphHostNodeGetParams(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS) {
        conv::write(params, host_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphHostNodeSetParams`.
    fn cuGraphHostNodeSetParams(node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        set(node, || host(&conv::read(params)?).map(Operation::Host))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddChildGraphNode`.
    fn cuGraphAddChildGraphNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, child_graph: CUgraph,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| child(graph, &CUDA_CHILD_GRAPH_NODE_PARAMS { graph: child_graph, ownership: 0 })) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphChildGraphNodeGetGraph`.
    fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph) {
        conv::write(graph, child_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddEventRecordNode`.
    fn cuGraphAddEventRecordNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, recorded: CUevent,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| event(recorded).map(Operation::RecordEvent)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphEventRecordNodeGetEvent`.
    fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        conv::write(out, event_at(node, false)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphEventRecordNodeSetEvent`.
    fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, recorded: CUevent) {
        set(node, || event(recorded).map(Operation::RecordEvent))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddEventWaitNode`.
    fn cuGraphAddEventWaitNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, awaited: CUevent,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| event(awaited).map(Operation::WaitEvent)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphEventWaitNodeGetEvent`.
    fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        conv::write(out, event_at(node, true)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphEventWaitNodeSetEvent`.
    fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, awaited: CUevent) {
        set(node, || event(awaited).map(Operation::WaitEvent))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddBatchMemOpNode`.
    fn cuGraphAddBatchMemOpNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| mem_ops(&conv::read(params)?).map(Operation::MemOps)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphBatchMemOpNodeGetParams`.
    fn cuGraphBatchMemOpNodeGetParams(node: CUgraphNode, params: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        conv::write(params, mem_ops_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphBatchMemOpNodeSetParams`.
    fn cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        set(node, || mem_ops(&conv::read(params)?).map(Operation::MemOps))
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddMemAllocNode`.
    fn cuGraphAddMemAllocNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) {
        let mut p = conv::read(params)?;
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| {
            let block = allocation(&p)?;
            p.dptr = block.address();
            Ok(Operation::Alloc(block))
        }) }?;
        conv::write(params, p)
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemAllocNodeGetParams`.
    fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        conv::write(params, describe_allocation(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddMemFreeNode`.
    fn cuGraphAddMemFreeNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, address: CUdeviceptr,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| freed(address).map(Operation::Free)) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphMemFreeNodeGetParams`.
    fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, address: *mut CUdeviceptr) {
        conv::write(address, freed_at(node)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddNode`.
    fn cuGraphAddNode(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *mut CUgraphNodeParams,
    ) {
        // SAFETY: as above, and what the type's parameters point to.
        unsafe { add_any(New { out: node, graph, after, data: core::ptr::null(), count }, params) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphAddNode_v2`.
    fn cuGraphAddNode_v2(
        node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        // SAFETY: as above.
        unsafe { add_any(New { out: node, graph, after, data, count }, params) }
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeSetParams`.
    fn cuGraphNodeSetParams(node: CUgraphNode, params: *mut CUgraphNodeParams) {
        // SAFETY: as above.
        set(node, || unsafe { changed(params) })
    }
}
