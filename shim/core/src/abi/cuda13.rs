//! Structures of CUDA 13's runtime that differ from CUDA 12's.

// As for CUDA 12's structures: the manual documents the fields under their own names.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

use super::{CUresourcetype, CUuuid, Plain, cudaMemoryType};

/// The answer to `cudaPointerGetAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaPointerAttributes {
    pub r#type: cudaMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
    pub reserved: [c_long; 8],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaPointerAttributes {}

/// The answer to `cudaGetDeviceProperties`: without the clock rates and the other fields that became attributes only.
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
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub multiProcessorCount: c_int,
    pub integrated: c_int,
    pub canMapHostMemory: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture1DMipmap: c_int,
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
    pub pageableMemoryAccess: c_int,
    pub concurrentManagedAccess: c_int,
    pub computePreemptionSupported: c_int,
    pub canUseHostPointerForRegisteredMem: c_int,
    pub cooperativeLaunch: c_int,
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
    pub deviceNumaConfig: c_int,
    pub deviceNumaId: c_int,
    pub mpsEnabled: c_int,
    pub hostNumaId: c_int,
    pub gpuPciDeviceID: c_uint,
    pub gpuPciSubsystemID: c_uint,
    pub hostNumaMultinodeIpcSupported: c_int,
    pub reserved: [c_int; 56],
}

// SAFETY: every field is an integer, a pointer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaDeviceProp {}

/// What an object reads: CUDA 12's structure with room to grow. The members of `res` lie as there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceDesc {
    pub resType: CUresourcetype,
    pub res: [u64; 16],
    pub flags: c_uint,
}

// SAFETY: every field is an integer or an array of them; all zeroes is a value of each.
unsafe impl Plain for cudaResourceDesc {}

/// CUDA 12's structure with room to grow, which is the driver's.
pub type cudaResourceViewDesc = super::CUDA_RESOURCE_VIEW_DESC;

impl From<super::cudaDeviceProp> for cudaDeviceProp {
    /// The fields that CUDA 12's structure has; the others are zero.
    fn from(from: super::cudaDeviceProp) -> Self {
        let mut to = Self::zeroed();
        macro_rules! copy {
            ($($field:ident)*) => { $(to.$field = from.$field;)* };
        }
        copy! {
            name uuid luid luidDeviceNodeMask totalGlobalMem sharedMemPerBlock regsPerBlock warpSize memPitch
            maxThreadsPerBlock maxThreadsDim maxGridSize totalConstMem major minor textureAlignment
            texturePitchAlignment multiProcessorCount integrated canMapHostMemory maxTexture1D maxTexture1DMipmap
            maxTexture2D maxTexture2DMipmap maxTexture2DLinear maxTexture2DGather maxTexture3D maxTexture3DAlt
            maxTextureCubemap maxTexture1DLayered maxTexture2DLayered maxTextureCubemapLayered maxSurface1D
            maxSurface2D maxSurface3D maxSurface1DLayered maxSurface2DLayered maxSurfaceCubemap
            maxSurfaceCubemapLayered surfaceAlignment concurrentKernels ECCEnabled pciBusID pciDeviceID pciDomainID
            tccDriver asyncEngineCount unifiedAddressing memoryBusWidth l2CacheSize persistingL2CacheMaxSize
            maxThreadsPerMultiProcessor streamPrioritiesSupported globalL1CacheSupported localL1CacheSupported
            sharedMemPerMultiprocessor regsPerMultiprocessor managedMemory isMultiGpuBoard multiGpuBoardGroupID
            hostNativeAtomicSupported pageableMemoryAccess concurrentManagedAccess computePreemptionSupported
            canUseHostPointerForRegisteredMem cooperativeLaunch sharedMemPerBlockOptin
            pageableMemoryAccessUsesHostPageTables directManagedMemAccessFromHost maxBlocksPerMultiProcessor
            accessPolicyMaxWindowSize reservedSharedMemPerBlock hostRegisterSupported sparseCudaArraySupported
            hostRegisterReadOnlySupported timelineSemaphoreInteropSupported memoryPoolsSupported
            gpuDirectRDMASupported gpuDirectRDMAFlushWritesOptions gpuDirectRDMAWritesOrdering
            memoryPoolSupportedHandleTypes deferredMappingCudaArraySupported ipcEventSupported clusterLaunch
            unifiedFunctionPointers
        }
        to
    }
}
