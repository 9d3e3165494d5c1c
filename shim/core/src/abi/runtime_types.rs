//! Structures of `driver_types.h` and `vector_types.h`.
//!
//! Layouts are those of CUDA 12.9 on 64-bit Linux; `layout.rs` asserts them at compile time.

// The manual documents each field under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::*;

use super::Plain;
use super::driver_types::*;
use super::handles::*;
use super::runtime_enums::*;

/// Sizes in three dimensions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for dim3 {}

/// Size of a box: bytes (or elements of an array), rows, slices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaExtent {}

/// A corner of a box: bytes (or elements of an array), rows, slices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaPos {}

/// Memory of rows that are `pitch` bytes apart.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaPitchedPtr {}

/// Bits of each channel of an array's elements, and their type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaChannelFormatDesc {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    pub f: cudaChannelFormatKind,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaChannelFormatDesc {}

/// The answer to `cudaGetDeviceProperties`, as of CUDA 12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaDeviceProp {
    pub name: [c_char; 256],
    pub uuid: CUuuid,
    pub luid: [c_char; 8],
    pub luidDeviceNodeMask: c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub clockRate: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: c_int,
    pub multiProcessorCount: c_int,
    pub kernelExecTimeoutEnabled: c_int,
    pub integrated: c_int,
    pub canMapHostMemory: c_int,
    pub computeMode: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture1DMipmap: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture2D: [c_int; 2],
    pub maxTexture2DMipmap: [c_int; 2],
    pub maxTexture2DLinear: [c_int; 3],
    pub maxTexture2DGather: [c_int; 2],
    pub maxTexture3D: [c_int; 3],
    pub maxTexture3DAlt: [c_int; 3],
    pub maxTextureCubemap: c_int,
    pub maxTexture1DLayered: [c_int; 2],
    pub maxTexture2DLayered: [c_int; 3],
    pub maxTextureCubemapLayered: [c_int; 2],
    pub maxSurface1D: c_int,
    pub maxSurface2D: [c_int; 2],
    pub maxSurface3D: [c_int; 3],
    pub maxSurface1DLayered: [c_int; 2],
    pub maxSurface2DLayered: [c_int; 3],
    pub maxSurfaceCubemap: c_int,
    pub maxSurfaceCubemapLayered: [c_int; 2],
    pub surfaceAlignment: usize,
    pub concurrentKernels: c_int,
    pub ECCEnabled: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub pciDomainID: c_int,
    pub tccDriver: c_int,
    pub asyncEngineCount: c_int,
    pub unifiedAddressing: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub l2CacheSize: c_int,
    pub persistingL2CacheMaxSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub streamPrioritiesSupported: c_int,
    pub globalL1CacheSupported: c_int,
    pub localL1CacheSupported: c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: c_int,
    pub managedMemory: c_int,
    pub isMultiGpuBoard: c_int,
    pub multiGpuBoardGroupID: c_int,
    pub hostNativeAtomicSupported: c_int,
    pub singleToDoublePrecisionPerfRatio: c_int,
    pub pageableMemoryAccess: c_int,
    pub concurrentManagedAccess: c_int,
    pub computePreemptionSupported: c_int,
    pub canUseHostPointerForRegisteredMem: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub maxBlocksPerMultiProcessor: c_int,
    pub accessPolicyMaxWindowSize: c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: c_int,
    pub sparseCudaArraySupported: c_int,
    pub hostRegisterReadOnlySupported: c_int,
    pub timelineSemaphoreInteropSupported: c_int,
    pub memoryPoolsSupported: c_int,
    pub gpuDirectRDMASupported: c_int,
    pub gpuDirectRDMAFlushWritesOptions: c_uint,
    pub gpuDirectRDMAWritesOrdering: c_int,
    pub memoryPoolSupportedHandleTypes: c_uint,
    pub deferredMappingCudaArraySupported: c_int,
    pub ipcEventSupported: c_int,
    pub clusterLaunch: c_int,
    pub unifiedFunctionPointers: c_int,
    pub reserved: [c_int; 63],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaDeviceProp {}

/// The answer to `cudaPointerGetAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaPointerAttributes {
    pub r#type: cudaMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaPointerAttributes {}

/// The answer to `cudaFuncGetAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaFuncAttributes {
    pub sharedSizeBytes: usize,
    pub constSizeBytes: usize,
    pub localSizeBytes: usize,
    pub maxThreadsPerBlock: c_int,
    pub numRegs: c_int,
    pub ptxVersion: c_int,
    pub binaryVersion: c_int,
    pub cacheModeCA: c_int,
    pub maxDynamicSharedSizeBytes: c_int,
    pub preferredShmemCarveout: c_int,
    pub clusterDimMustBeSet: c_int,
    pub requiredClusterWidth: c_int,
    pub requiredClusterHeight: c_int,
    pub requiredClusterDepth: c_int,
    pub clusterSchedulingPolicyPreference: c_int,
    pub nonPortableClusterSizeAllowed: c_int,
    pub reserved: [c_int; 16],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaFuncAttributes {}

/// An event, to be opened in another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaIpcEventHandle_t {
    pub reserved: [c_char; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaIpcEventHandle_t {}

/// An allocation, to be opened in another process. What is in it is ours to define.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaIpcMemHandle_t {
    pub reserved: [c_char; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaIpcMemHandle_t {}

/// An allocation, to be opened on another node of the fabric.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemFabricHandle_t {
    pub reserved: [c_char; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemFabricHandle_t {}

/// A copy of a box (`cudaMemcpy3D`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemcpy3DParms {
    pub srcArray: cudaArray_t,
    pub srcPos: cudaPos,
    pub srcPtr: cudaPitchedPtr,
    pub dstArray: cudaArray_t,
    pub dstPos: cudaPos,
    pub dstPtr: cudaPitchedPtr,
    pub extent: cudaExtent,
    pub kind: cudaMemcpyKind,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemcpy3DParms {}

/// A copy of a box between devices (`cudaMemcpy3DPeer`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemcpy3DPeerParms {
    pub srcArray: cudaArray_t,
    pub srcPos: cudaPos,
    pub srcPtr: cudaPitchedPtr,
    pub srcDevice: c_int,
    pub dstArray: cudaArray_t,
    pub dstPos: cudaPos,
    pub dstPtr: cudaPitchedPtr,
    pub dstDevice: c_int,
    pub extent: cudaExtent,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemcpy3DPeerParms {}

/// A place for memory: a device, or a node of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemLocation {
    pub r#type: cudaMemLocationType,
    pub id: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemLocation {}

/// Who may do what with a pool's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemAccessDesc {
    pub location: cudaMemLocation,
    pub flags: cudaMemAccessFlags,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemAccessDesc {}

/// What `cudaMemPoolCreate` is to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemPoolProps {
    pub allocType: cudaMemAllocationType,
    pub handleTypes: cudaMemAllocationHandleType,
    pub location: cudaMemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemPoolProps {}

/// A pool's allocation, to be opened in another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemPoolPtrExportData {
    pub reserved: [u8; 64],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaMemPoolPtrExportData {}

/// A range of addresses that the L2 cache is to favour.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaAccessPolicyWindow {
    pub base_ptr: *mut c_void,
    pub num_bytes: usize,
    pub hitRatio: f32,
    pub hitProp: cudaAccessProperty,
    pub missProp: cudaAccessProperty,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaAccessPolicyWindow {}

/// Which fence domain stands for which.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchMemSyncDomainMap {
    pub default_: u8,
    pub remote: u8,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchMemSyncDomainMap {}

/// The part `clusterDim` of [`cudaLaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchAttributeValue_clusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue_clusterDim {}

/// The part `programmaticEvent` of [`cudaLaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchAttributeValue_programmaticEvent {
    pub event: cudaEvent_t,
    pub flags: c_int,
    pub triggerAtBlockStart: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue_programmaticEvent {}

/// The part `preferredClusterDim` of [`cudaLaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchAttributeValue_preferredClusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue_preferredClusterDim {}

/// The part `launchCompletionEvent` of [`cudaLaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchAttributeValue_launchCompletionEvent {
    pub event: cudaEvent_t,
    pub flags: c_int,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue_launchCompletionEvent {}

/// The part `deviceUpdatableKernelNode` of [`cudaLaunchAttributeValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchAttributeValue_deviceUpdatableKernelNode {
    pub deviceUpdatable: c_int,
    pub devNode: cudaGraphDeviceNode_t,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue_deviceUpdatableKernelNode {}

/// The value of a launch attribute; its id is the tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaLaunchAttributeValue {
    pub pad: [c_char; 64],
    pub accessPolicyWindow: cudaAccessPolicyWindow,
    pub cooperative: c_int,
    pub syncPolicy: cudaSynchronizationPolicy,
    pub clusterDim: cudaLaunchAttributeValue_clusterDim,
    pub clusterSchedulingPolicyPreference: cudaClusterSchedulingPolicy,
    pub programmaticStreamSerializationAllowed: c_int,
    pub programmaticEvent: cudaLaunchAttributeValue_programmaticEvent,
    pub priority: c_int,
    pub memSyncDomainMap: cudaLaunchMemSyncDomainMap,
    pub memSyncDomain: cudaLaunchMemSyncDomain,
    pub preferredClusterDim: cudaLaunchAttributeValue_preferredClusterDim,
    pub launchCompletionEvent: cudaLaunchAttributeValue_launchCompletionEvent,
    pub deviceUpdatableKernelNode: cudaLaunchAttributeValue_deviceUpdatableKernelNode,
    pub sharedMemCarveout: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttributeValue {}

/// An attribute of a launch, and its value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaLaunchAttribute {
    pub id: cudaLaunchAttributeID,
    pub pad: [c_char; 4],
    pub val: cudaLaunchAttributeValue,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchAttribute {}

/// How a kernel is launched (`cudaLaunchKernelExC`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchConfig_t {
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub dynamicSmemBytes: usize,
    pub stream: cudaStream_t,
    pub attrs: *mut cudaLaunchAttribute,
    pub numAttrs: c_uint,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchConfig_t {}

/// One kernel of `cudaLaunchCooperativeKernelMultiDevice`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchParams {
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub args: *mut *mut c_void,
    pub sharedMem: usize,
    pub stream: cudaStream_t,
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaLaunchParams {}
