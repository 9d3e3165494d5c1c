//! Executable graphs: instantiate, update, launch.

use core::ffi::{c_uint, c_ulonglong};

use super::super::stream::resolve;
use super::nodes::{changed, kernel_operation};
use crate::abi::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResultInfo, conv,
    cudaEvent_t, cudaGraph_t, cudaGraphExec_t, cudaGraphNode_t, cudaGraphNodeParams, cudaKernelNodeParams,
    cudaStream_t,
};
use crate::api::driver::graph::exec as driver;
use crate::api::driver::graph::params;
use crate::device::context;
use crate::graph::{self, Operation, capture};
use crate::{runtime, streamed};

runtime! {
    /// CUDA Runtime API, Graph Management: `cudaGraphInstantiate`.
    fn cudaGraphInstantiate(exec: *mut cudaGraphExec_t, graph: cudaGraph_t, flags: c_ulonglong) {
        context::runtime_current()?;
        driver::instantiate(exec, graph, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphInstantiateWithFlags`.
    fn cudaGraphInstantiateWithFlags(exec: *mut cudaGraphExec_t, graph: cudaGraph_t, flags: c_ulonglong) {
        context::runtime_current()?;
        driver::instantiate(exec, graph, flags)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecDestroy`. Launches on their way go on.
    fn cudaGraphExecDestroy(exec: cudaGraphExec_t) {
        driver::destroy_exec(exec)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecGetFlags`.
    fn cudaGraphExecGetFlags(exec: cudaGraphExec_t, flags: *mut u64) {
        conv::write(flags, driver::exec_flags(exec)?)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecUpdate`.
    fn cudaGraphExecUpdate(exec: cudaGraphExec_t, graph: cudaGraph_t, info: *mut CUgraphExecUpdateResultInfo) {
        driver::update(exec, graph, info)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecKernelNodeSetParams`.
    fn cudaGraphExecKernelNodeSetParams(
        exec: cudaGraphExec_t, node: cudaGraphNode_t, params: *const cudaKernelNodeParams,
    ) {
        // SAFETY: the application promises the parameters of the kernel.
        driver::exec_set(exec, node, || unsafe { kernel_operation(params) })
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecMemsetNodeSetParams`.
    fn cudaGraphExecMemsetNodeSetParams(
        exec: cudaGraphExec_t, node: cudaGraphNode_t, params: *const CUDA_MEMSET_NODE_PARAMS,
    ) {
        driver::exec_set(exec, node, || params::fill(&conv::read(params)?).map(Operation::Fill))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecHostNodeSetParams`.
    fn cudaGraphExecHostNodeSetParams(exec: cudaGraphExec_t, node: cudaGraphNode_t, params: *const CUDA_HOST_NODE_PARAMS) {
        driver::exec_set(exec, node, || params::host(&conv::read(params)?).map(Operation::Host))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecChildGraphNodeSetParams`.
    fn cudaGraphExecChildGraphNodeSetParams(exec: cudaGraphExec_t, node: cudaGraphNode_t, child: cudaGraph_t) {
        driver::exec_set_child(exec, node, child)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecEventRecordNodeSetEvent`.
    fn cudaGraphExecEventRecordNodeSetEvent(exec: cudaGraphExec_t, node: cudaGraphNode_t, event: cudaEvent_t) {
        driver::exec_set(exec, node, || params::event(event).map(Operation::RecordEvent))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecEventWaitNodeSetEvent`.
    fn cudaGraphExecEventWaitNodeSetEvent(exec: cudaGraphExec_t, node: cudaGraphNode_t, event: cudaEvent_t) {
        driver::exec_set(exec, node, || params::event(event).map(Operation::WaitEvent))
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphExecNodeSetParams`.
    fn cudaGraphExecNodeSetParams(exec: cudaGraphExec_t, node: cudaGraphNode_t, params: *mut cudaGraphNodeParams) {
        // SAFETY: the application promises what the type's parameters point to.
        driver::exec_set(exec, node, || unsafe { changed(params) })
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeSetEnabled`.
    fn cudaGraphNodeSetEnabled(exec: cudaGraphExec_t, node: cudaGraphNode_t, enabled: c_uint) {
        driver::set_enabled(exec, node, enabled)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphNodeGetEnabled`.
    fn cudaGraphNodeGetEnabled(exec: cudaGraphExec_t, node: cudaGraphNode_t, enabled: *mut c_uint) {
        conv::write(enabled, driver::enabled(exec, node)?)
    }
}

streamed! { runtime
    /// CUDA Runtime API, Graph Management: `cudaGraphInstantiateWithParams`.
    fn cudaGraphInstantiateWithParams(
        exec: *mut cudaGraphExec_t, graph: cudaGraph_t, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ), fn cudaGraphInstantiateWithParams_ptsz(..) |_default| {
        context::runtime_current()?;
        driver::instantiate_with(exec, graph, params)
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphUpload`.
    fn cudaGraphUpload(exec: cudaGraphExec_t, stream: cudaStream_t), fn cudaGraphUpload_ptsz(..) |default| {
        capture::refuse(&*resolve(stream, default)?)?;
        graph::exec(exec as u64)?.prepare()
    }

    /// CUDA Runtime API, Graph Management: `cudaGraphLaunch`.
    fn cudaGraphLaunch(exec: cudaGraphExec_t, stream: cudaStream_t), fn cudaGraphLaunch_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        // Recorded: before the graph is looked at.
        capture::refuse(&stream)?;
        graph::exec(exec as u64)?.launch(&stream)
    }
}
