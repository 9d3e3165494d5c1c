/* One source, two runtimes: CUDA's names by default, HIP's with -DHIP. What a bench calls and what it is named is the same on both sides. */
#pragma once

#ifdef HIP
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#define GPU(name) hip##name
typedef hipPointerAttribute_t pointer_attributes;
typedef void *device_pointer;
#define DRIVER(name) hip##name
#define hipMallocHost(to, bytes) hipHostMalloc(to, bytes, 0)
#define hipFreeHost hipHostFree
#define hipGraphInstantiateOf(made, graph) hipGraphInstantiate(made, graph, NULL, NULL, 0)
#define stream_wait32(stream, at, value) hipStreamWaitValue32(stream, at, value, hipStreamWaitValueGte, 0xffffffff)
#define ADDRESS_RANGE(base, size, of) hipMemGetAddressRange(base, size, of)
/* Declared, but not in the library. */
#define LAUNCH_HOST_FUNCTION(stream, function, data) 801
#else
#include <cuda.h>
#include <cuda_runtime_api.h>
#define GPU(name) cuda##name
typedef struct cudaPointerAttributes pointer_attributes;
typedef CUdeviceptr device_pointer;
#define DRIVER(name) cu##name
#define cudaGraphInstantiateOf(made, graph) cudaGraphInstantiate(made, graph, 0)
#define stream_wait32(stream, at, value) cuStreamWaitValue32(stream, at, value, CU_STREAM_WAIT_VALUE_GEQ)
#define ADDRESS_RANGE(base, size, of) cuMemGetAddressRange(base, size, of)
#define LAUNCH_HOST_FUNCTION(stream, function, data) cudaLaunchHostFunc(stream, function, data)
#endif
typedef GPU(Stream_t) gpu_stream;
typedef GPU(Event_t) gpu_event;
