//! Adding nodes; their parameters. Copies are in their own file.

use core::ffi::{c_int, c_void};

use super::super::execution::function_of;
use super::copies::cube;
use crate::abi::{
    CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS,
    CUgraphEdgeData, CUgraphNodeType, CUlaunchAttributeValue, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocationType, CUmemPoolProps, Error, Plain, Result, conv, cudaConditionalNodeParams,
    cudaEvent_t, cudaGraph_t, cudaGraphNode_t, cudaGraphNodeParams, cudaKernelNodeParams, cudaMemAllocNodeParams,
    cudaMemAllocationHandleType, cudaMemAllocationType, cudaMemLocationType, cudaMemPoolProps, dim3,
};
use crate::api::driver::graph::nodes::{
    New, attribute, child, child_at, conditional, copy_attributes, set, set_attribute,
};
use crate::api::driver::graph::params;
use crate::device::context;
use crate::graph::Operation;
use crate::graph::operation::Kernel;
use crate::module::{Shape, registration};
use crate::runtime;

/// The kernel that a parameter structure describes.
///
/// # Errors
/// INVALID_DEVICE_FUNCTION for NULL, INVALID_RESOURCE_HANDLE for what was never registered, else as [`Kernel::new`].
///
/// # Safety
/// Parameters are what the kernel expects.
pub(super) unsafe fn kernel(p: &cudaKernelNodeParams) -> Result<Kernel> {
    let function = function_of(p.func, context::runtime_current()?)?;
    let shape = Shape {
        grid: [p.gridDim.x, p.gridDim.y, p.gridDim.z],
        block: [p.blockDim.x, p.blockDim.y, p.blockDim.z],
        dynamic_shared: p.sharedMemBytes,
    };
    // SAFETY: the caller's promise.
    unsafe { params::kernel_of(function, shape, p.kernelParams, p.extra) }
}

/// As [`kernel`], as an operation.
///
/// # Safety
/// As [`kernel`].
pub(super) unsafe fn kernel_operation(params: *const cudaKernelNodeParams) -> Result<Operation> {
    // SAFETY: the caller's promise.
    unsafe { kernel(&conv::read(params)?) }.map(Operation::Kernel)
}

/// A kernel launch as the runtime reads it back: by the host function, or by the handle of a function that has none.
fn describe_kernel(kernel: &Kernel) -> Result<cudaKernelNodeParams> {
    let p = params::describe_kernel(kernel)?;
    let context = kernel.function.module()?.context();
    let symbol = registration::symbol_of(&kernel.function, context);
    Ok(cudaKernelNodeParams {
        func: symbol.map_or(p.func.cast(), |symbol| symbol as *mut c_void),
        gridDim: dim3 {
            x: p.gridDimX,
            y: p.gridDimY,
            z: p.gridDimZ,
        },
        blockDim: dim3 {
            x: p.blockDimX,
            y: p.blockDimY,
            z: p.blockDimZ,
        },
        sharedMemBytes: p.sharedMemBytes,
        kernelParams: p.kernelParams,
        extra: p.extra,
    })
}

/// The driver's form of an allocation's parameters: the same numbers.
fn allocation(p: &cudaMemAllocNodeParams) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut pool = CUmemPoolProps::zeroed();
    pool.allocType = CUmemAllocationType(p.poolProps.allocType.0);
    pool.handleTypes = CUmemAllocationHandleType(p.poolProps.handleTypes.0);
    pool.location.r#type = CUmemLocationType(p.poolProps.location.r#type.0);
    pool.location.id = p.poolProps.location.id;
    CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: pool,
        accessDescs: p.accessDescs.cast::<CUmemAccessDesc>(),
        accessDescCount: p.accessDescCount,
        bytesize: p.bytesize,
        dptr: 0,
    }
}

/// The operation of a structure that can be any. NOT_SUPPORTED for the types that are refused.
///
/// # Safety
/// Pointers in it are what the type's own call asks for.
pub(super) unsafe fn operation(parent: cudaGraph_t, params: *const cudaGraphNodeParams) -> Result<Operation> {
    type Type = CUgraphNodeType;
    let p = conv::read(params)?;
    if p.reserved0 != [0; 3] || p.reserved2 != 0 {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: every bit pattern of the union's members is a value; the caller's promise for what they point to.
    unsafe {
        Ok(match CUgraphNodeType(p.r#type.0) {
            Type::KERNEL => Operation::Kernel(kernel(&p.u.kernel)?),
            Type::MEMCPY => cube(&p.u.memcpy.copyParams)?,
            Type::MEMSET => Operation::Fill(params::fill(&p.u.memset)?),
            Type::HOST => Operation::Host(params::host(&p.u.host)?),
            Type::GRAPH => child(parent, &p.u.graph)?,
            Type::EMPTY if p.u.reserved1 != [0; 29] => return Err(Error::INVALID_VALUE),
            Type::EMPTY => Operation::Empty,
            Type::WAIT_EVENT => Operation::WaitEvent(params::event(p.u.event.event)?),
            Type::EVENT_RECORD => Operation::RecordEvent(params::event(p.u.event.event)?),
            Type::MEM_ALLOC => Operation::Alloc(params::allocation(&allocation(&p.u.alloc))?),
            Type::MEM_FREE => Operation::Free(params::freed(p.u.free.dptr)?),
            Type::EXT_SEMAS_SIGNAL | Type::EXT_SEMAS_WAIT => return Err(Error::NOT_SUPPORTED),
            Type::CONDITIONAL => {
                let cudaConditionalNodeParams {
                    handle, r#type, size, ..
                } = p.u.conditional;
                conditional(context::runtime_current()?, handle, r#type, size)?
            }
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
pub(super) unsafe fn changed(params: *const cudaGraphNodeParams) -> Result<Operation> {
    if CUgraphNodeType(conv::read(params)?.r#type.0) == CUgraphNodeType::CONDITIONAL {
        return Err(Error::NOT_SUPPORTED);
    }
    // SAFETY: the caller's promise.
    unsafe { operation(core::ptr::null_mut(), params) }
}

/// Adds a node of any type; an allocation's address, and where a conditional node's bodies are, is written back.
///
/// # Safety
/// As [`operation`] and [`New::add`].
unsafe fn add_any(new: New, params: *mut cudaGraphNodeParams) -> Result<()> {
    let parent = new.graph;
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(address) = new.add_telling(|| operation(parent, params))? {
            match CUgraphNodeType((*params).r#type.0) {
                CUgraphNodeType::CONDITIONAL => (*params).u.conditional.phGraph_out = address as *mut cudaGraph_t,
                _ => (*params).u.alloc.dptr = address as *mut c_void,
            }
        }
    }
    Ok(())
}

runtime! {
    /// CUDA Runtime API, Graph Management: `cudaGraphAddEmptyNode`.
    fn cudaGraphAddEmptyNode(node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize) {
        // SAFETY: the application promises an array of `count` nodes.
        unsafe { New { out: node, graph, after, data: core::ptr::null(), count }.add(|| Ok(Operation::Empty)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddKernelNode`.
    fn cudaGraphAddKernelNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *const cudaKernelNodeParams,
    ) {
        // SAFETY: as above, and the parameters of the kernel.
        unsafe { New { out: node, graph, after, data: core::ptr::null(), count }.add(|| kernel_operation(params)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphKernelNodeGetParams`.
    fn cudaGraphKernelNodeGetParams(node: cudaGraphNode_t, params: *mut cudaKernelNodeParams) {
        conv::write(params, describe_kernel(&params::kernel_at(node)?)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphKernelNodeSetParams`.
    fn cudaGraphKernelNodeSetParams(node: cudaGraphNode_t, params: *const cudaKernelNodeParams) {
        // SAFETY: the application promises the parameters of the kernel.
        set(node, || unsafe { kernel_operation(params) })
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphKernelNodeGetAttribute`.
    fn cudaGraphKernelNodeGetAttribute(node: cudaGraphNode_t, id: c_int, value: *mut CUlaunchAttributeValue) {
        conv::write(value, attribute(node, id)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphKernelNodeSetAttribute`.
    fn cudaGraphKernelNodeSetAttribute(node: cudaGraphNode_t, id: c_int, value: *const CUlaunchAttributeValue) {
        set_attribute(node, id, &conv::read(value)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphKernelNodeCopyAttributes`. Source first, unlike the driver's.
    fn cudaGraphKernelNodeCopyAttributes(src: cudaGraphNode_t, dst: cudaGraphNode_t) {
        copy_attributes(dst, src)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemsetNode`.
    fn cudaGraphAddMemsetNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| params::fill(&conv::read(params)?).map(Operation::Fill)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemsetNodeGetParams`.
    fn cudaGraphMemsetNodeGetParams(node: cudaGraphNode_t, params: *mut CUDA_MEMSET_NODE_PARAMS) {
        conv::write(params, params::fill_at(node)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemsetNodeSetParams`.
    fn cudaGraphMemsetNodeSetParams(node: cudaGraphNode_t, params: *const CUDA_MEMSET_NODE_PARAMS) {
        set(node, || params::fill(&conv::read(params)?).map(Operation::Fill))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddHostNode`.
    fn cudaGraphAddHostNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| params::host(&conv::read(params)?).map(Operation::Host)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphHostNodeGetParams`.
    fn cudaGraphHostNodeGetParams(node: cudaGraphNode_t, params: *mut CUDA_HOST_NODE_PARAMS) {
        conv::write(params, params::host_at(node)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphHostNodeSetParams`.
    fn cudaGraphHostNodeSetParams(node: cudaGraphNode_t, params: *const CUDA_HOST_NODE_PARAMS) {
        set(node, || params::host(&conv::read(params)?).map(Operation::Host))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddChildGraphNode`.
    fn cudaGraphAddChildGraphNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, child_graph: cudaGraph_t,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| child(graph, &CUDA_CHILD_GRAPH_NODE_PARAMS { graph: child_graph, ownership: 0 })) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphChildGraphNodeGetGraph`.
    fn cudaGraphChildGraphNodeGetGraph(node: cudaGraphNode_t, graph: *mut cudaGraph_t) {
        conv::write(graph, child_at(node)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddEventRecordNode`.
    fn cudaGraphAddEventRecordNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, event: cudaEvent_t,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| params::event(event).map(Operation::RecordEvent)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphEventRecordNodeGetEvent`.
    fn cudaGraphEventRecordNodeGetEvent(node: cudaGraphNode_t, out: *mut cudaEvent_t) {
        conv::write(out, params::event_at(node, false)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphEventRecordNodeSetEvent`.
    fn cudaGraphEventRecordNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) {
        set(node, || params::event(event).map(Operation::RecordEvent))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddEventWaitNode`.
    fn cudaGraphAddEventWaitNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, event: cudaEvent_t,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| params::event(event).map(Operation::WaitEvent)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphEventWaitNodeGetEvent`.
    fn cudaGraphEventWaitNodeGetEvent(node: cudaGraphNode_t, out: *mut cudaEvent_t) {
        conv::write(out, params::event_at(node, true)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphEventWaitNodeSetEvent`.
    fn cudaGraphEventWaitNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) {
        set(node, || params::event(event).map(Operation::WaitEvent))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemAllocNode`.
    fn cudaGraphAddMemAllocNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *mut cudaMemAllocNodeParams,
    ) {
        let mut p = conv::read(params)?;
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| {
            let block = params::allocation(&allocation(&p))?;
            p.dptr = block.address() as *mut c_void;
            Ok(Operation::Alloc(block))
        }) }?;
        conv::write(params, p)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemAllocNodeGetParams`.
    fn cudaGraphMemAllocNodeGetParams(node: cudaGraphNode_t, params: *mut cudaMemAllocNodeParams) {
        let p = params::describe_allocation(node)?;
        let mut pool = cudaMemPoolProps::zeroed();
        pool.allocType = cudaMemAllocationType(p.poolProps.allocType.0);
        pool.handleTypes = cudaMemAllocationHandleType(p.poolProps.handleTypes.0);
        pool.location.r#type = cudaMemLocationType(p.poolProps.location.r#type.0);
        pool.location.id = p.poolProps.location.id;
        conv::write(params, cudaMemAllocNodeParams {
            poolProps: pool,
            accessDescs: core::ptr::null(),
            accessDescCount: 0,
            bytesize: p.bytesize,
            dptr: p.dptr as *mut c_void,
        })
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddMemFreeNode`.
    fn cudaGraphAddMemFreeNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize, address: *mut c_void,
    ) {
        let new = New { out: node, graph, after, data: core::ptr::null(), count };
        // SAFETY: as above.
        unsafe { new.add(|| params::freed(address as u64).map(Operation::Free)) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphMemFreeNodeGetParams`. The pointer goes to `*address`.
    fn cudaGraphMemFreeNodeGetParams(node: cudaGraphNode_t, address: *mut c_void) {
        conv::write(address.cast::<u64>(), params::freed_at(node)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddNode`.
    fn cudaGraphAddNode(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, count: usize,
        params: *mut cudaGraphNodeParams,
    ) {
        // SAFETY: as above, and what the type's parameters point to.
        unsafe { add_any(New { out: node, graph, after, data: core::ptr::null(), count }, params) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphAddNode_v2`.
    fn cudaGraphAddNode_v2(
        node: *mut cudaGraphNode_t, graph: cudaGraph_t, after: *const cudaGraphNode_t, data: *const CUgraphEdgeData,
        count: usize, params: *mut cudaGraphNodeParams,
    ) {
        // SAFETY: as above.
        unsafe { add_any(New { out: node, graph, after, data, count }, params) }
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeSetParams`.
    fn cudaGraphNodeSetParams(node: cudaGraphNode_t, params: *mut cudaGraphNodeParams) {
        // SAFETY: as above.
        set(node, || unsafe { changed(params) })
    }
}
