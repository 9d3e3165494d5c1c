//! Structures of graphs, of `cuda.h` and `driver_types.h`.
//!
//! Layouts are those of CUDA 12.9 on 64-bit Linux; `layout.rs` asserts them at compile time.

// The manual documents each field under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::*;

use super::Plain;
use super::driver_enums::*;
use super::driver_types::*;
use super::handles::*;
use super::runtime_enums::cudaGraphNodeType;
use super::runtime_types::*;

/// Declares structures for which all zeroes is a value.
macro_rules! plain {
    ($($name:ident)*) => {$(
        // SAFETY: every field is an integer, a pointer or an array, structure or union of them; all zeroes is a value of each.
        unsafe impl Plain for $name {}
    )*};
}

plain! {
    CUDA_KERNEL_NODE_PARAMS_v1 CUDA_KERNEL_NODE_PARAMS CUDA_MEMSET_NODE_PARAMS CUDA_MEMSET_NODE_PARAMS_v2 CUDA_HOST_NODE_PARAMS
    CUDA_MEMCPY_NODE_PARAMS CUDA_CHILD_GRAPH_NODE_PARAMS CUDA_EVENT_NODE_PARAMS CUDA_BATCH_MEM_OP_NODE_PARAMS CUDA_MEM_ALLOC_NODE_PARAMS
    CUDA_MEM_FREE_NODE_PARAMS CUDA_CONDITIONAL_NODE_PARAMS cudaConditionalNodeParams CUDA_GRAPH_INSTANTIATE_PARAMS CUgraphEdgeData CUgraphExecUpdateResultInfo CUgraphNodeParams
    CUgraphNodeParams_u cudaKernelNodeParams cudaMemcpyNodeParams cudaMemAllocNodeParams cudaGraphNodeParams cudaGraphNodeParams_u
}

/// A kernel launch, before 12.0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_KERNEL_NODE_PARAMS_v1 {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// A kernel launch; `kern` and `ctx` count where `func` is NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

/// A fill; the runtime's `cudaMemsetParams` has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

/// A fill in a context, as `cuGraphAddNode` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMSET_NODE_PARAMS_v2 {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
    pub ctx: CUcontext,
}

/// A host function; the runtime's `cudaHostNodeParams` has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_HOST_NODE_PARAMS {
    pub r#fn: CUhostFn,
    pub userData: *mut c_void,
}

/// A copy, as `cuGraphAddNode` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY_NODE_PARAMS {
    pub flags: c_int,
    pub reserved: c_int,
    pub copyCtx: CUcontext,
    pub copyParams: CUDA_MEMCPY3D,
}

/// A child graph; `ownership` 0 clones it, 1 moves it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_CHILD_GRAPH_NODE_PARAMS {
    pub graph: CUgraph,
    pub ownership: c_int,
}

/// An event, to record or to wait for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EVENT_NODE_PARAMS {
    pub event: CUevent,
}

/// Stream memory operations.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
    pub ctx: CUcontext,
    pub count: c_uint,
    pub paramArray: *mut CUstreamBatchMemOpParams,
    pub flags: c_uint,
}

/// An allocation; `dptr` is written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}

/// The end of an allocation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEM_FREE_NODE_PARAMS {
    pub dptr: CUdeviceptr,
}

/// A conditional node; `phGraph_out` is written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_CONDITIONAL_NODE_PARAMS {
    pub handle: u64,
    pub r#type: c_uint,
    pub size: c_uint,
    pub phGraph_out: *mut CUgraph,
    pub ctx: CUcontext,
}

/// The runtime's form, in the calling thread's context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaConditionalNodeParams {
    pub handle: u64,
    pub r#type: c_uint,
    pub size: c_uint,
    pub phGraph_out: *mut CUgraph,
}

/// Arguments and answers of `cuGraphInstantiateWithParams`; the runtime's structure has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    pub flags: u64,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: CUgraphInstantiateResult,
}

/// How a node depends on another; all zeroes: it begins when the other has ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CUgraphEdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub r#type: u8,
    pub reserved: [u8; 5],
}

/// Why an update failed; the runtime's structure has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUgraphExecUpdateResultInfo {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}

/// The parameters in a [`CUgraphNodeParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUgraphNodeParams_u {
    pub reserved1: [c_longlong; 29],
    pub kernel: CUDA_KERNEL_NODE_PARAMS,
    pub memcpy: CUDA_MEMCPY_NODE_PARAMS,
    pub memset: CUDA_MEMSET_NODE_PARAMS_v2,
    pub host: CUDA_HOST_NODE_PARAMS,
    pub graph: CUDA_CHILD_GRAPH_NODE_PARAMS,
    pub event: CUDA_EVENT_NODE_PARAMS,
    pub alloc: CUDA_MEM_ALLOC_NODE_PARAMS,
    pub free: CUDA_MEM_FREE_NODE_PARAMS,
    pub memOp: CUDA_BATCH_MEM_OP_NODE_PARAMS,
    pub conditional: CUDA_CONDITIONAL_NODE_PARAMS,
}

/// A node of any type, for `cuGraphAddNode`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphNodeParams {
    pub r#type: CUgraphNodeType,
    pub reserved0: [c_int; 3],
    pub u: CUgraphNodeParams_u,
    pub reserved2: c_longlong,
}

/// A kernel launch, by the host function that stands for the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaKernelNodeParams {
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// A copy, as `cudaGraphAddNode` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemcpyNodeParams {
    pub flags: c_int,
    pub reserved: [c_int; 3],
    pub copyParams: cudaMemcpy3DParms,
}

/// An allocation; `dptr` is written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemAllocNodeParams {
    pub poolProps: cudaMemPoolProps,
    pub accessDescs: *const cudaMemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: *mut c_void,
}

/// The parameters in a [`cudaGraphNodeParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaGraphNodeParams_u {
    pub reserved1: [c_longlong; 29],
    pub kernel: cudaKernelNodeParams,
    pub memcpy: cudaMemcpyNodeParams,
    pub memset: CUDA_MEMSET_NODE_PARAMS,
    pub host: CUDA_HOST_NODE_PARAMS,
    pub graph: CUDA_CHILD_GRAPH_NODE_PARAMS,
    pub event: CUDA_EVENT_NODE_PARAMS,
    pub alloc: cudaMemAllocNodeParams,
    pub free: CUDA_MEM_FREE_NODE_PARAMS,
    pub conditional: cudaConditionalNodeParams,
}

/// A node of any type, for `cudaGraphAddNode`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaGraphNodeParams {
    pub r#type: cudaGraphNodeType,
    pub reserved0: [c_int; 3],
    pub u: cudaGraphNodeParams_u,
    pub reserved2: c_longlong,
}

/// Declares a `Debug` that says no more than the name: which member of a union counts is known elsewhere.
macro_rules! opaque_debug {
    ($($name:ident)*) => {$(
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

opaque_debug! { CUgraphNodeParams cudaGraphNodeParams }
