//! Executable graphs: instantiate, update, launch.

use core::ffi::{c_char, c_uint, c_ulonglong};

use super::super::stream::resolve;
use super::nodes::{changed, kernel_operation, kernel_operation_v1};
use super::params::*;
use crate::abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUevent, CUgraph, CUgraphExec,
    CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeParams,
    CUstream, Error, Result, conv,
};
use crate::device::context;
use crate::graph::{self, Exec, Flags, Operation, capture};
use crate::{driver, streamed};

/// `cuGraphInstantiateWithFlags`.
pub(in crate::api) fn instantiate(out: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong) -> Result<()> {
    let graph = graph::graph(graph as u64)?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(
        out,
        Exec::instantiate(&graph, Flags::new(flags, false)?)? as CUgraphExec,
    )
}

/// `cuGraphInstantiateWithParams`. The stream of an upload need not be looked at: nothing has to be brought to the device.
pub(in crate::api) fn instantiate_with(
    out: *mut CUgraphExec,
    graph: CUgraph,
    params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> Result<()> {
    let mut p = conv::read(params)?;
    let made = graph::graph(graph as u64).and_then(|graph| {
        if out.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        Exec::instantiate(&graph, Flags::new(p.flags, true)?)
    });
    p.hErrNode_out = core::ptr::null_mut();
    p.result_out = match made {
        Ok(_) => CUgraphInstantiateResult::SUCCESS,
        Err(_) => graph::graph(graph as u64)
            .ok()
            .and_then(|graph| graph.refusal())
            .unwrap_or(CUgraphInstantiateResult::ERROR),
    };
    conv::write(params, p)?;
    conv::write(out, made? as CUgraphExec)
}

/// `cuGraphExecUpdate`.
pub(in crate::api) fn update(exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo) -> Result<()> {
    let (exec, graph) = (graph::exec(exec as u64)?, graph::graph(graph as u64)?);
    let update = exec.update(&graph)?;
    conv::write_if(
        info,
        CUgraphExecUpdateResultInfo {
            result: update.result,
            errorNode: update.node as CUgraphNode,
            errorFromNode: update.from as CUgraphNode,
        },
    );
    match update.result {
        CUgraphExecUpdateResult::SUCCESS => Ok(()),
        _ => Err(Error::GRAPH_EXEC_UPDATE_FAILURE),
    }
}

/// Replaces the parameters of a node in an executable graph.
pub(in crate::api) fn exec_set(
    exec: CUgraphExec,
    node: CUgraphNode,
    make: impl FnOnce() -> Result<Operation>,
) -> Result<()> {
    let exec = graph::exec(exec as u64)?;
    exec.set(node as u64, make()?)
}

/// `cuGraphExecChildGraphNodeSetParams`.
pub(in crate::api) fn exec_set_child(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) -> Result<()> {
    let child = graph::graph(child as u64)?;
    // Recorded: even before the executable graph is looked at.
    if child.is_unique() {
        return Err(Error::GRAPH_EXEC_UPDATE_FAILURE);
    }
    graph::exec(exec as u64)?.set_child(node as u64, &child)
}

/// `cuGraphNodeSetEnabled`.
pub(in crate::api) fn set_enabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) -> Result<()> {
    graph::exec(exec as u64)?.set_enabled(node as u64, enabled != 0)
}

/// `cuGraphNodeGetEnabled`.
pub(in crate::api) fn enabled(exec: CUgraphExec, node: CUgraphNode) -> Result<c_uint> {
    graph::exec(exec as u64)?.is_enabled(node as u64).map(c_uint::from)
}

/// `cuGraphExecGetFlags`.
pub(in crate::api) fn exec_flags(exec: CUgraphExec) -> Result<u64> {
    Ok(graph::exec(exec as u64)?.flags().read_back())
}

/// `cuGraphExecDestroy`.
pub(in crate::api) fn destroy_exec(exec: CUgraphExec) -> Result<()> {
    graph::exec(exec as u64)?.destroy();
    Ok(())
}

driver! {
    /// CUDA Driver API before 11.0: `cuGraphInstantiate`. The log stays empty.
    fn cuGraphInstantiate(
        exec: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log: *mut c_char, size: usize,
    ) {
        conv::write_if(error_node, core::ptr::null_mut());
        if size > 0 {
            conv::write_if(log, 0);
        }
        context::current()?;
        instantiate(exec, graph, 0)
    }

    /// CUDA Driver API before 12.0: `cuGraphInstantiate`. The log stays empty.
    fn cuGraphInstantiate_v2(
        exec: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log: *mut c_char, size: usize,
    ) {
        conv::write_if(error_node, core::ptr::null_mut());
        if size > 0 {
            conv::write_if(log, 0);
        }
        context::current()?;
        instantiate(exec, graph, 0)
    }

    /// CUDA Driver API, Graph Management: `cuGraphInstantiate`.
    fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong) {
        context::current()?;
        instantiate(exec, graph, flags)
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecDestroy`. Launches on their way go on.
    fn cuGraphExecDestroy(exec: CUgraphExec) {
        destroy_exec(exec)
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecGetFlags`.
    fn cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64) {
        conv::write(flags, exec_flags(exec)?)
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecUpdate_v2`.
    fn cuGraphExecUpdate_v2(exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo) {
        update(exec, graph, info)
    }

    /// CUDA Driver API before 12.0: `cuGraphExecUpdate`.
    fn cuGraphExecUpdate(
        exec: CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, result: *mut CUgraphExecUpdateResult,
    ) {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult::ERROR,
            errorNode: core::ptr::null_mut(),
            errorFromNode: core::ptr::null_mut(),
        };
        let updated = update(exec, graph, &mut info);
        conv::write_if(error_node, info.errorNode);
        conv::write_if(result, info.result);
        updated
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecKernelNodeSetParams` before 12.0.
    fn cuGraphExecKernelNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        // SAFETY: the application promises the parameters of the kernel.
        exec_set(exec, node, || unsafe { kernel_operation_v1(params) })
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecKernelNodeSetParams_v2`.
    fn cuGraphExecKernelNodeSetParams_v2(exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS) {
        // SAFETY: as above.
        exec_set(exec, node, || unsafe { kernel_operation(params) })
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecMemcpyNodeSetParams`.
    fn cuGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMCPY3D, context: CUcontext,
    ) {
        node_context(context)?;
        exec_set(exec, node, || copy(&conv::read(params)?).map(Operation::Copy))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecMemsetNodeSetParams`.
    fn cuGraphExecMemsetNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext,
    ) {
        node_context(context)?;
        exec_set(exec, node, || fill(&conv::read(params)?).map(Operation::Fill))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecHostNodeSetParams`.
    fn cuGraphExecHostNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        exec_set(exec, node, || host(&conv::read(params)?).map(Operation::Host))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecChildGraphNodeSetParams`.
    fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        exec_set_child(exec, node, child)
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecEventRecordNodeSetEvent`.
    fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, recorded: CUevent) {
        exec_set(exec, node, || event(recorded).map(Operation::RecordEvent))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecEventWaitNodeSetEvent`.
    fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, awaited: CUevent) {
        exec_set(exec, node, || event(awaited).map(Operation::WaitEvent))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecBatchMemOpNodeSetParams`.
    fn cuGraphExecBatchMemOpNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        exec_set(exec, node, || mem_ops(&conv::read(params)?).map(Operation::MemOps))
    }

    /// CUDA Driver API, Graph Management: `cuGraphExecNodeSetParams`.
    fn cuGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *mut CUgraphNodeParams) {
        // SAFETY: the application promises what the type's parameters point to.
        exec_set(exec, node, || unsafe { changed(params) })
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeSetEnabled`.
    fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        set_enabled(exec, node, enabled)
    }

    /// CUDA Driver API, Graph Management: `cuGraphNodeGetEnabled`.
    fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, out: *mut c_uint) {
        conv::write(out, enabled(exec, node)?)
    }
}

streamed! { driver
    /// CUDA Driver API, Graph Management: `cuGraphInstantiateWithParams`.
    fn cuGraphInstantiateWithParams(exec: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS),
    fn cuGraphInstantiateWithParams_ptsz(..) |_default| {
        context::current()?;
        instantiate_with(exec, graph, params)
    }

    /// CUDA Driver API, Graph Management: `cuGraphUpload`.
    fn cuGraphUpload(exec: CUgraphExec, stream: CUstream), fn cuGraphUpload_ptsz(..) |default| {
        capture::refuse(&*resolve(stream, default)?)?;
        graph::exec(exec as u64)?.prepare()
    }

    /// CUDA Driver API, Graph Management: `cuGraphLaunch`.
    fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream), fn cuGraphLaunch_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        // Recorded: before the graph is looked at.
        capture::refuse(&stream)?;
        graph::exec(exec as u64)?.launch(&stream)
    }
}
