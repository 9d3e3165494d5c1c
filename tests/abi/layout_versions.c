/* Prints the layout of the structures of CUDA 11's and 13's runtimes that differ from CUDA 12's, as NVIDIA's headers have it, in the
 * form of shim/core/src/abi/layout11.rs and layout13.rs.
 *
 * usage: cc -I CUDA/include layout_versions.c -o layout && ./layout > layout11.rs
 * (the test `layouts_agree_with_nvidias_headers` does it)
 */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* `type` is a keyword of Rust */
#define FIELD(name) printf("        %s%s: %zu,\n", strcmp(#name, "type") ? "" : "r#", #name, offsetof(struct TYPE, name))
#define END puts("    }")

int main(void) {
    puts("//! Sizes and offsets of structures of another runtime than CUDA 12's, asserted at compile time.\n//!");
    puts("//! Printed by `tests/abi/layout_versions.c` from NVIDIA's headers; do not edit.\n");
#if CUDART_VERSION < 12000
    puts("use super::cuda11::{DEVICE_PROP, FUNC_ATTRIBUTES, TEXTURE_DESC, assert_beginning};\nuse super::{cudaDeviceProp, cudaFuncAttributes, cudaTextureDesc};\n");
    puts("assert_beginning! {");
#define TYPE cudaDeviceProp
    printf("    cudaDeviceProp: DEVICE_PROP = %zu {\n", sizeof(struct TYPE));
    FIELD(name);
    FIELD(uuid);
    FIELD(luid);
    FIELD(luidDeviceNodeMask);
    FIELD(totalGlobalMem);
    FIELD(sharedMemPerBlock);
    FIELD(regsPerBlock);
    FIELD(warpSize);
    FIELD(memPitch);
    FIELD(maxThreadsPerBlock);
    FIELD(maxThreadsDim);
    FIELD(maxGridSize);
    FIELD(clockRate);
    FIELD(totalConstMem);
    FIELD(major);
    FIELD(minor);
    FIELD(textureAlignment);
    FIELD(texturePitchAlignment);
    FIELD(deviceOverlap);
    FIELD(multiProcessorCount);
    FIELD(kernelExecTimeoutEnabled);
    FIELD(integrated);
    FIELD(canMapHostMemory);
    FIELD(computeMode);
    FIELD(maxTexture1D);
    FIELD(maxTexture1DMipmap);
    FIELD(maxTexture1DLinear);
    FIELD(maxTexture2D);
    FIELD(maxTexture2DMipmap);
    FIELD(maxTexture2DLinear);
    FIELD(maxTexture2DGather);
    FIELD(maxTexture3D);
    FIELD(maxTexture3DAlt);
    FIELD(maxTextureCubemap);
    FIELD(maxTexture1DLayered);
    FIELD(maxTexture2DLayered);
    FIELD(maxTextureCubemapLayered);
    FIELD(maxSurface1D);
    FIELD(maxSurface2D);
    FIELD(maxSurface3D);
    FIELD(maxSurface1DLayered);
    FIELD(maxSurface2DLayered);
    FIELD(maxSurfaceCubemap);
    FIELD(maxSurfaceCubemapLayered);
    FIELD(surfaceAlignment);
    FIELD(concurrentKernels);
    FIELD(ECCEnabled);
    FIELD(pciBusID);
    FIELD(pciDeviceID);
    FIELD(pciDomainID);
    FIELD(tccDriver);
    FIELD(asyncEngineCount);
    FIELD(unifiedAddressing);
    FIELD(memoryClockRate);
    FIELD(memoryBusWidth);
    FIELD(l2CacheSize);
    FIELD(persistingL2CacheMaxSize);
    FIELD(maxThreadsPerMultiProcessor);
    FIELD(streamPrioritiesSupported);
    FIELD(globalL1CacheSupported);
    FIELD(localL1CacheSupported);
    FIELD(sharedMemPerMultiprocessor);
    FIELD(regsPerMultiprocessor);
    FIELD(managedMemory);
    FIELD(isMultiGpuBoard);
    FIELD(multiGpuBoardGroupID);
    FIELD(hostNativeAtomicSupported);
    FIELD(singleToDoublePrecisionPerfRatio);
    FIELD(pageableMemoryAccess);
    FIELD(concurrentManagedAccess);
    FIELD(computePreemptionSupported);
    FIELD(canUseHostPointerForRegisteredMem);
    FIELD(cooperativeLaunch);
    FIELD(cooperativeMultiDeviceLaunch);
    FIELD(sharedMemPerBlockOptin);
    FIELD(pageableMemoryAccessUsesHostPageTables);
    FIELD(directManagedMemAccessFromHost);
    FIELD(maxBlocksPerMultiProcessor);
    FIELD(accessPolicyMaxWindowSize);
    FIELD(reservedSharedMemPerBlock);
    END;
#undef TYPE
#define TYPE cudaFuncAttributes
    printf("    cudaFuncAttributes: FUNC_ATTRIBUTES = %zu {\n", sizeof(struct TYPE));
    FIELD(sharedSizeBytes);
    FIELD(constSizeBytes);
    FIELD(localSizeBytes);
    FIELD(maxThreadsPerBlock);
    FIELD(numRegs);
    FIELD(ptxVersion);
    FIELD(binaryVersion);
    FIELD(cacheModeCA);
    FIELD(maxDynamicSharedSizeBytes);
    FIELD(preferredShmemCarveout);
    END;
#undef TYPE
#define TYPE cudaTextureDesc
    printf("    cudaTextureDesc: TEXTURE_DESC = %zu {\n", sizeof(struct TYPE));
    FIELD(addressMode);
    FIELD(filterMode);
    FIELD(readMode);
    FIELD(sRGB);
    FIELD(borderColor);
    FIELD(normalizedCoords);
    FIELD(maxAnisotropy);
    FIELD(mipmapFilterMode);
    FIELD(mipmapLevelBias);
    FIELD(minMipmapLevelClamp);
    FIELD(maxMipmapLevelClamp);
    FIELD(disableTrilinearOptimization);
    END;
#undef TYPE
#else
    puts("use super::assert_layout;\nuse super::cuda13::{cudaDeviceProp, cudaPointerAttributes, cudaResourceDesc, cudaResourceViewDesc};\n");
    puts("assert_layout! {");
#define TYPE cudaPointerAttributes
    printf("    cudaPointerAttributes: %zu, %zu {\n", sizeof(struct TYPE), _Alignof(struct TYPE));
    FIELD(type);
    FIELD(device);
    FIELD(devicePointer);
    FIELD(hostPointer);
    FIELD(reserved);
    END;
#undef TYPE
#define TYPE cudaDeviceProp
    printf("    cudaDeviceProp: %zu, %zu {\n", sizeof(struct TYPE), _Alignof(struct TYPE));
    FIELD(name);
    FIELD(uuid);
    FIELD(luid);
    FIELD(luidDeviceNodeMask);
    FIELD(totalGlobalMem);
    FIELD(sharedMemPerBlock);
    FIELD(regsPerBlock);
    FIELD(warpSize);
    FIELD(memPitch);
    FIELD(maxThreadsPerBlock);
    FIELD(maxThreadsDim);
    FIELD(maxGridSize);
    FIELD(totalConstMem);
    FIELD(major);
    FIELD(minor);
    FIELD(textureAlignment);
    FIELD(texturePitchAlignment);
    FIELD(multiProcessorCount);
    FIELD(integrated);
    FIELD(canMapHostMemory);
    FIELD(maxTexture1D);
    FIELD(maxTexture1DMipmap);
    FIELD(maxTexture2D);
    FIELD(maxTexture2DMipmap);
    FIELD(maxTexture2DLinear);
    FIELD(maxTexture2DGather);
    FIELD(maxTexture3D);
    FIELD(maxTexture3DAlt);
    FIELD(maxTextureCubemap);
    FIELD(maxTexture1DLayered);
    FIELD(maxTexture2DLayered);
    FIELD(maxTextureCubemapLayered);
    FIELD(maxSurface1D);
    FIELD(maxSurface2D);
    FIELD(maxSurface3D);
    FIELD(maxSurface1DLayered);
    FIELD(maxSurface2DLayered);
    FIELD(maxSurfaceCubemap);
    FIELD(maxSurfaceCubemapLayered);
    FIELD(surfaceAlignment);
    FIELD(concurrentKernels);
    FIELD(ECCEnabled);
    FIELD(pciBusID);
    FIELD(pciDeviceID);
    FIELD(pciDomainID);
    FIELD(tccDriver);
    FIELD(asyncEngineCount);
    FIELD(unifiedAddressing);
    FIELD(memoryBusWidth);
    FIELD(l2CacheSize);
    FIELD(persistingL2CacheMaxSize);
    FIELD(maxThreadsPerMultiProcessor);
    FIELD(streamPrioritiesSupported);
    FIELD(globalL1CacheSupported);
    FIELD(localL1CacheSupported);
    FIELD(sharedMemPerMultiprocessor);
    FIELD(regsPerMultiprocessor);
    FIELD(managedMemory);
    FIELD(isMultiGpuBoard);
    FIELD(multiGpuBoardGroupID);
    FIELD(hostNativeAtomicSupported);
    FIELD(pageableMemoryAccess);
    FIELD(concurrentManagedAccess);
    FIELD(computePreemptionSupported);
    FIELD(canUseHostPointerForRegisteredMem);
    FIELD(cooperativeLaunch);
    FIELD(sharedMemPerBlockOptin);
    FIELD(pageableMemoryAccessUsesHostPageTables);
    FIELD(directManagedMemAccessFromHost);
    FIELD(maxBlocksPerMultiProcessor);
    FIELD(accessPolicyMaxWindowSize);
    FIELD(reservedSharedMemPerBlock);
    FIELD(hostRegisterSupported);
    FIELD(sparseCudaArraySupported);
    FIELD(hostRegisterReadOnlySupported);
    FIELD(timelineSemaphoreInteropSupported);
    FIELD(memoryPoolsSupported);
    FIELD(gpuDirectRDMASupported);
    FIELD(gpuDirectRDMAFlushWritesOptions);
    FIELD(gpuDirectRDMAWritesOrdering);
    FIELD(memoryPoolSupportedHandleTypes);
    FIELD(deferredMappingCudaArraySupported);
    FIELD(ipcEventSupported);
    FIELD(clusterLaunch);
    FIELD(unifiedFunctionPointers);
    FIELD(deviceNumaConfig);
    FIELD(deviceNumaId);
    FIELD(mpsEnabled);
    FIELD(hostNumaId);
    FIELD(gpuPciDeviceID);
    FIELD(gpuPciSubsystemID);
    FIELD(hostNumaMultinodeIpcSupported);
    FIELD(reserved);
    END;
#undef TYPE
#define TYPE cudaResourceDesc
    printf("    cudaResourceDesc: %zu, %zu {\n", sizeof(struct TYPE), _Alignof(struct TYPE));
    FIELD(resType);
    FIELD(res);
    FIELD(flags);
    END;
#undef TYPE
#define TYPE cudaResourceViewDesc
    printf("    cudaResourceViewDesc: %zu, %zu {\n", sizeof(struct TYPE), _Alignof(struct TYPE));
    FIELD(format);
    FIELD(width);
    FIELD(height);
    FIELD(depth);
    FIELD(firstMipmapLevel);
    FIELD(lastMipmapLevel);
    FIELD(firstLayer);
    FIELD(lastLayer);
    FIELD(reserved);
    END;
#undef TYPE
#endif
    puts("}");
    return 0;
}
