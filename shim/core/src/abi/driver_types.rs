//! Structures of `cuda.h`.
//!
//! Layouts are those of CUDA 12.9 on 64-bit Linux; `layout.rs` asserts them at compile time.

// The manual documents each field under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::*;

use super::Plain;
use super::driver_enums::*;
use super::handles::*;

/// The 16 bytes that tell devices, and private tables, apart.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUuuid {
    pub bytes: [c_char; 16],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUuuid {}

/// An event, to be opened in another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUipcEventHandle {
    pub reserved: [c_char; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUipcEventHandle {}

/// An allocation, to be opened in another process. What is in it is ours to define.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUipcMemHandle {
    pub reserved: [c_char; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUipcMemHandle {}

/// An allocation, to be opened on another node of the fabric.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemFabricHandle {
    pub data: [u8; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemFabricHandle {}

/// The answer to `cuDeviceGetProperties`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUdevprop {
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub sharedMemPerBlock: c_int,
    pub totalConstantMemory: c_int,
    pub SIMDWidth: c_int,
    pub memPitch: c_int,
    pub regsPerBlock: c_int,
    pub clockRate: c_int,
    pub textureAlign: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUdevprop {}

/// A place for memory: a device, or a node of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemLocation {
    pub r#type: CUmemLocationType,
    pub id: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemLocation {}

/// Further properties in [`CUmemAllocationProp`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemAllocationProp_allocFlags {
    pub compressionType: u8,
    pub gpuDirectRDMACapable: u8,
    pub usage: u16,
    pub reserved: [u8; 4],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemAllocationProp_allocFlags {}

/// What `cuMemCreate` is to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemAllocationProp {
    pub r#type: CUmemAllocationType,
    pub requestedHandleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32HandleMetaData: *mut c_void,
    pub allocFlags: CUmemAllocationProp_allocFlags,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemAllocationProp {}

/// Who may do what with a mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemAccessDesc {
    pub location: CUmemLocation,
    pub flags: CUmemAccess_flags,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemAccessDesc {}

/// What `cuMemPoolCreate` is to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemPoolProps {
    pub allocType: CUmemAllocationType,
    pub handleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemPoolProps {}

/// A pool's allocation, to be opened in another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemPoolPtrExportData {
    pub reserved: [u8; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemPoolPtrExportData {}

/// What `cuMulticastCreate` is to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmulticastObjectProp {
    pub numDevices: c_uint,
    pub size: usize,
    pub handleTypes: u64,
    pub flags: u64,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmulticastObjectProp {}

/// Tokens for NVIDIA's old peer-to-peer kernel interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_POINTER_ATTRIBUTE_P2P_TOKENS {
    pub p2pToken: u64,
    pub vaSpaceToken: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_POINTER_ATTRIBUTE_P2P_TOKENS {}

/// Shape of an array of one or two dimensions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_ARRAY_DESCRIPTOR {}

/// Shape of an array of three dimensions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_ARRAY3D_DESCRIPTOR {}

/// A copy of a rectangle (`cuMemcpy2D`). Pitches and widths are bytes, heights rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_MEMCPY2D {}

/// A copy of a box (`cuMemcpy3D`). Pitches and widths are bytes, heights rows, depths slices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_MEMCPY3D {}

/// A copy of a box between contexts (`cuMemcpy3DPeer`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY3D_PEER {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_MEMCPY3D_PEER {}

/// The part `waitValue_u` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamBatchMemOpParams_waitValue_u {
    pub value: u32,
    pub value64: u64,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_waitValue_u {}

/// The part `waitValue` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamBatchMemOpParams_waitValue {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub u: CUstreamBatchMemOpParams_waitValue_u,
    pub flags: c_uint,
    pub alias: CUdeviceptr,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_waitValue {}

/// The part `writeValue_u` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamBatchMemOpParams_writeValue_u {
    pub value: u32,
    pub value64: u64,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_writeValue_u {}

/// The part `writeValue` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamBatchMemOpParams_writeValue {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub u: CUstreamBatchMemOpParams_writeValue_u,
    pub flags: c_uint,
    pub alias: CUdeviceptr,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_writeValue {}

/// The part `flushRemoteWrites` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUstreamBatchMemOpParams_flushRemoteWrites {
    pub operation: CUstreamBatchMemOpType,
    pub flags: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_flushRemoteWrites {}

/// The part `memoryBarrier` of [`CUstreamBatchMemOpParams`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUstreamBatchMemOpParams_memoryBarrier {
    pub operation: CUstreamBatchMemOpType,
    pub flags: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams_memoryBarrier {}

/// One operation of `cuStreamBatchMemOp`; `operation` is the tag of all members.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamBatchMemOpParams {
    pub operation: CUstreamBatchMemOpType,
    pub waitValue: CUstreamBatchMemOpParams_waitValue,
    pub writeValue: CUstreamBatchMemOpParams_writeValue,
    pub flushRemoteWrites: CUstreamBatchMemOpParams_flushRemoteWrites,
    pub memoryBarrier: CUstreamBatchMemOpParams_memoryBarrier,
    pub pad: [u64; 6],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUstreamBatchMemOpParams {}

/// A range of addresses that the L2 cache is to favour.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUaccessPolicyWindow {
    pub base_ptr: *mut c_void,
    pub num_bytes: usize,
    pub hitRatio: f32,
    pub hitProp: CUaccessProperty,
    pub missProp: CUaccessProperty,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUaccessPolicyWindow {}

/// Which fence domain stands for which.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchMemSyncDomainMap {
    pub default_: u8,
    pub remote: u8,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchMemSyncDomainMap {}

/// The part `clusterDim` of [`CUlaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttributeValue_clusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue_clusterDim {}

/// The part `programmaticEvent` of [`CUlaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttributeValue_programmaticEvent {
    pub event: CUevent,
    pub flags: c_int,
    pub triggerAtBlockStart: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue_programmaticEvent {}

/// The part `launchCompletionEvent` of [`CUlaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttributeValue_launchCompletionEvent {
    pub event: CUevent,
    pub flags: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue_launchCompletionEvent {}

/// The part `preferredClusterDim` of [`CUlaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttributeValue_preferredClusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue_preferredClusterDim {}

/// The part `deviceUpdatableKernelNode` of [`CUlaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttributeValue_deviceUpdatableKernelNode {
    pub deviceUpdatable: c_int,
    pub devNode: CUgraphDeviceNode,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue_deviceUpdatableKernelNode {}

/// The value of a launch attribute; its id is the tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUlaunchAttributeValue {
    pub pad: [c_char; 64],
    pub accessPolicyWindow: CUaccessPolicyWindow,
    pub cooperative: c_int,
    pub syncPolicy: CUsynchronizationPolicy,
    pub clusterDim: CUlaunchAttributeValue_clusterDim,
    pub clusterSchedulingPolicyPreference: CUclusterSchedulingPolicy,
    pub programmaticStreamSerializationAllowed: c_int,
    pub programmaticEvent: CUlaunchAttributeValue_programmaticEvent,
    pub launchCompletionEvent: CUlaunchAttributeValue_launchCompletionEvent,
    pub priority: c_int,
    pub memSyncDomainMap: CUlaunchMemSyncDomainMap,
    pub memSyncDomain: CUlaunchMemSyncDomain,
    pub preferredClusterDim: CUlaunchAttributeValue_preferredClusterDim,
    pub deviceUpdatableKernelNode: CUlaunchAttributeValue_deviceUpdatableKernelNode,
    pub sharedMemCarveout: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttributeValue {}

/// An attribute of a launch, and its value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttribute {
    pub id: CUlaunchAttributeID,
    pub pad: [c_char; 4],
    pub value: CUlaunchAttributeValue,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchAttribute {}

/// How a kernel is launched (`cuLaunchKernelEx`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchConfig {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub attrs: *mut CUlaunchAttribute,
    pub numAttrs: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlaunchConfig {}

/// One kernel of `cuLaunchCooperativeKernelMultiDevice`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_LAUNCH_PARAMS {
    pub function: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub kernelParams: *mut *mut c_void,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_LAUNCH_PARAMS {}

/// A number of multiprocessors.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUexecAffinitySmCount {
    pub val: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUexecAffinitySmCount {}

/// The part `param` of [`CUexecAffinityParam`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUexecAffinityParam_param {
    pub smCount: CUexecAffinitySmCount,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUexecAffinityParam_param {}

/// A restriction of a context to a part of the device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUexecAffinityParam {
    pub r#type: CUexecAffinityType,
    pub param: CUexecAffinityParam_param,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUexecAffinityParam {}

/// The graphics context that a context is made for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUctxCigParam {
    pub sharedDataType: CUcigDataType,
    pub sharedData: *mut c_void,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUctxCigParam {}

/// What `cuCtxCreate_v4` is to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUctxCreateParams {
    pub execAffinityParams: *mut CUexecAffinityParam,
    pub numExecAffinityParams: c_int,
    pub cigParams: *mut CUctxCigParam,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUctxCreateParams {}

/// Host functions and data that a library's code refers to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlibraryHostUniversalFunctionAndDataTable {
    pub functionTable: *mut c_void,
    pub functionWindowSize: usize,
    pub dataTable: *mut c_void,
    pub dataWindowSize: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUlibraryHostUniversalFunctionAndDataTable {}

/// How copies of a batch are done; the runtime's structure has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpyAttributes {
    pub srcAccessOrder: c_int,
    pub srcLocHint: CUmemLocation,
    pub dstLocHint: CUmemLocation,
    pub flags: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemcpyAttributes {}

/// A place in a copy of a batch, in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUoffset3D {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUoffset3D {}

/// How much a copy of a batch moves, in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUextent3D {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUextent3D {}

/// The part `op.ptr` of [`CUmemcpy3DOperand`]: rows and layers in elements, 0 without gaps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpy3DOperand_ptr {
    pub ptr: CUdeviceptr,
    pub rowLength: usize,
    pub layerHeight: usize,
    pub locHint: CUmemLocation,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemcpy3DOperand_ptr {}

/// The part `op.array` of [`CUmemcpy3DOperand`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpy3DOperand_array {
    pub array: CUarray,
    pub offset: CUoffset3D,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemcpy3DOperand_array {}

/// The part `op` of [`CUmemcpy3DOperand`]; its type is the tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUmemcpy3DOperand_op {
    pub ptr: CUmemcpy3DOperand_ptr,
    pub array: CUmemcpy3DOperand_array,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemcpy3DOperand_op {}

/// One side of a copy of a batch (`cuMemcpy3DBatchAsync`); the runtime's structure has the same layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpy3DOperand {
    pub r#type: CUmemcpy3DOperandType,
    pub op: CUmemcpy3DOperand_op,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUmemcpy3DOperand {}

/// One copy of a batch (`cuMemcpy3DBatchAsync`); the runtime's structure has the same layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_BATCH_OP {
    pub src: CUmemcpy3DOperand,
    pub dst: CUmemcpy3DOperand,
    pub extent: CUextent3D,
    pub srcAccessOrder: c_int,
    pub flags: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_MEMCPY3D_BATCH_OP {}

/// The memory that an array with deferred mapping needs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
    pub size: usize,
    pub alignment: usize,
    pub reserved: [c_uint; 4],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_ARRAY_MEMORY_REQUIREMENTS {}

/// The part `tileExtent` of [`CUDA_ARRAY_SPARSE_PROPERTIES`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES_tileExtent {
    pub width: c_uint,
    pub height: c_uint,
    pub depth: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_ARRAY_SPARSE_PROPERTIES_tileExtent {}

/// Tiles and tail of a sparse array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES {
    pub tileExtent: CUDA_ARRAY_SPARSE_PROPERTIES_tileExtent,
    pub miptailFirstLevel: c_uint,
    pub miptailSize: c_ulonglong,
    pub flags: c_uint,
    pub reserved: [c_uint; 4],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for CUDA_ARRAY_SPARSE_PROPERTIES {}
