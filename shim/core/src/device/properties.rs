//! `cudaDeviceProp`, filled from the attributes.

use super::{Device, attributes, pci};
use crate::abi::{CUdevprop, CUuuid, Plain, Result, cudaDeviceProp};

/// `cudaGetDeviceProperties`.
pub fn runtime(device: &Device) -> Result<cudaDeviceProp> {
    let get = |id| attributes::get(device, id);
    let size = |id| get(id).map(|value| value as usize);
    let mut properties = cudaDeviceProp::zeroed();
    for (to, from) in properties.name.iter_mut().zip(device.name.bytes().take(255)) {
        *to = from.cast_signed();
    }
    properties.uuid = uuid(device);
    properties.totalGlobalMem = device.total_memory() as usize;
    properties.sharedMemPerBlock = size(8)?;
    properties.regsPerBlock = get(12)?;
    properties.warpSize = get(10)?;
    properties.memPitch = size(11)?;
    properties.maxThreadsPerBlock = get(1)?;
    properties.maxThreadsDim = [get(2)?, get(3)?, get(4)?];
    properties.maxGridSize = [get(5)?, get(6)?, get(7)?];
    properties.clockRate = get(13)?;
    properties.totalConstMem = size(9)?;
    (properties.major, properties.minor) = attributes::compute_capability();
    properties.textureAlignment = size(14)?;
    properties.texturePitchAlignment = size(51)?;
    properties.deviceOverlap = get(15)?;
    properties.multiProcessorCount = get(16)?;
    properties.kernelExecTimeoutEnabled = get(17)?;
    properties.integrated = get(18)?;
    properties.canMapHostMemory = get(19)?;
    properties.computeMode = get(20)?;
    properties.maxTexture1D = get(21)?;
    properties.maxTexture1DMipmap = get(77)?;
    properties.maxTexture1DLinear = get(69)?;
    properties.maxTexture2D = [get(22)?, get(23)?];
    properties.maxTexture2DMipmap = [get(73)?, get(74)?];
    properties.maxTexture2DLinear = [get(70)?, get(71)?, get(72)?];
    properties.maxTexture2DGather = [get(45)?, get(46)?];
    properties.maxTexture3D = [get(24)?, get(25)?, get(26)?];
    properties.maxTexture3DAlt = [get(47)?, get(48)?, get(49)?];
    properties.maxTextureCubemap = get(52)?;
    properties.maxTexture1DLayered = [get(42)?, get(43)?];
    properties.maxTexture2DLayered = [get(27)?, get(28)?, get(29)?];
    properties.maxTextureCubemapLayered = [get(53)?, get(54)?];
    properties.maxSurface1D = get(55)?;
    properties.maxSurface2D = [get(56)?, get(57)?];
    properties.maxSurface3D = [get(58)?, get(59)?, get(60)?];
    properties.maxSurface1DLayered = [get(61)?, get(62)?];
    properties.maxSurface2DLayered = [get(63)?, get(64)?, get(65)?];
    properties.maxSurfaceCubemap = get(66)?;
    properties.maxSurfaceCubemapLayered = [get(67)?, get(68)?];
    properties.surfaceAlignment = size(30)?;
    properties.concurrentKernels = get(31)?;
    properties.ECCEnabled = get(32)?;
    properties.pciBusID = pci::bus(device);
    properties.pciDeviceID = pci::slot(device);
    properties.pciDomainID = get(50)?;
    properties.tccDriver = get(35)?;
    properties.asyncEngineCount = get(40)?;
    properties.unifiedAddressing = get(41)?;
    properties.memoryClockRate = get(36)?;
    properties.memoryBusWidth = get(37)?;
    properties.l2CacheSize = get(38)?;
    properties.persistingL2CacheMaxSize = get(108)?;
    properties.maxThreadsPerMultiProcessor = get(39)?;
    properties.streamPrioritiesSupported = get(78)?;
    properties.globalL1CacheSupported = get(79)?;
    properties.localL1CacheSupported = get(80)?;
    properties.sharedMemPerMultiprocessor = size(81)?;
    properties.regsPerMultiprocessor = get(82)?;
    properties.managedMemory = get(83)?;
    properties.isMultiGpuBoard = get(84)?;
    properties.multiGpuBoardGroupID = get(85)?;
    properties.hostNativeAtomicSupported = get(86)?;
    properties.singleToDoublePrecisionPerfRatio = get(87)?;
    properties.pageableMemoryAccess = get(88)?;
    properties.concurrentManagedAccess = get(89)?;
    properties.computePreemptionSupported = get(90)?;
    properties.canUseHostPointerForRegisteredMem = get(91)?;
    properties.cooperativeLaunch = get(95)?;
    properties.cooperativeMultiDeviceLaunch = get(96)?;
    properties.sharedMemPerBlockOptin = size(97)?;
    properties.pageableMemoryAccessUsesHostPageTables = get(100)?;
    properties.directManagedMemAccessFromHost = get(101)?;
    properties.maxBlocksPerMultiProcessor = get(106)?;
    properties.accessPolicyMaxWindowSize = get(109)?;
    properties.reservedSharedMemPerBlock = size(111)?;
    properties.hostRegisterSupported = get(99)?;
    properties.sparseCudaArraySupported = get(112)?;
    properties.hostRegisterReadOnlySupported = get(113)?;
    properties.timelineSemaphoreInteropSupported = get(114)?;
    properties.memoryPoolsSupported = get(115)?;
    properties.gpuDirectRDMASupported = get(116)?;
    properties.gpuDirectRDMAFlushWritesOptions = get(117)? as u32;
    properties.gpuDirectRDMAWritesOrdering = get(118)?;
    properties.memoryPoolSupportedHandleTypes = get(119)? as u32;
    properties.deferredMappingCudaArraySupported = get(121)?;
    properties.ipcEventSupported = get(125)?;
    properties.clusterLaunch = get(120)?;
    properties.unifiedFunctionPointers = get(129)?;
    Ok(properties)
}

/// `cuDeviceGetProperties` (the deprecated structure of ten fields).
pub fn driver(device: &Device) -> Result<CUdevprop> {
    let get = |id| attributes::get(device, id);
    let mut properties = CUdevprop::zeroed();
    properties.maxThreadsPerBlock = get(1)?;
    properties.maxThreadsDim = [get(2)?, get(3)?, get(4)?];
    properties.maxGridSize = [get(5)?, get(6)?, get(7)?];
    properties.sharedMemPerBlock = get(8)?;
    properties.totalConstantMemory = get(9)?;
    properties.SIMDWidth = get(10)?;
    properties.memPitch = get(11)?;
    properties.regsPerBlock = get(12)?;
    properties.clockRate = get(13)?;
    properties.textureAlign = get(14)?;
    Ok(properties)
}

/// The UUID in C's type.
pub fn uuid(device: &Device) -> CUuuid {
    CUuuid {
        bytes: device.uuid.map(u8::cast_signed),
    }
}
