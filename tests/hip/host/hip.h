// HIP on the CPU, as far as the test programs use it: the model that the GPU's results are compared with. Everything happens at once and
// in program order; of a stream that is captured, a list is kept. Device memory is one shared mapping, so forked children see it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "threads.h"

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorNotReady = 600 };
inline const char *hipGetErrorString(hipError_t error) { return error ? "error" : "no error"; }
inline hipError_t hipGetLastError() { return hipSuccess; }

// ---- Devices -----------------------------------------------------------------------------------------------------------------------
inline int host_device = 0;
inline hipError_t hipGetDeviceCount(int *count) { return *count = 2, hipSuccess; }
inline hipError_t hipSetDevice(int device) { return host_device = device, hipSuccess; }
inline hipError_t hipGetDevice(int *device) { return *device = host_device, hipSuccess; }
inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipDeviceCanAccessPeer(int *can, int, int) { return *can = 1, hipSuccess; }
inline hipError_t hipDeviceEnablePeerAccess(int, unsigned) { return hipSuccess; }
inline hipError_t hipDeviceDisablePeerAccess(int) { return hipSuccess; }

// ---- Memory ------------------------------------------------------------------------------------------------------------------------
enum hipMemcpyKind {
    hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice, hipMemcpyDefault
};
enum { hipHostMallocDefault = 0, hipHostMallocMapped = 2, hipHostMallocPortable = 1, hipHostRegisterDefault = 0,
       hipHostRegisterMapped = 2, hipMemAttachGlobal = 1 };

// All of the device's memory, made before anything forks.
inline char *host_arena = (char *)mmap(nullptr, 1 << 30, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
inline size_t host_arena_used = 0;

template <class T> hipError_t hipMalloc(T **pointer, size_t bytes)
{
    *pointer = (T *)(host_arena + host_arena_used);
    memset((void *)*pointer, 0xa5, bytes);
    host_arena_used += (bytes + 255) & ~(size_t)255;
    return hipSuccess;
}
inline hipError_t hipFree(void *) { return hipSuccess; }
template <class T> hipError_t hipMallocManaged(T **pointer, size_t bytes, unsigned = 1) { return hipMalloc(pointer, bytes); }
template <class T> hipError_t hipHostMalloc(T **pointer, size_t bytes, unsigned = 0) { return hipMalloc(pointer, bytes); }
inline hipError_t hipHostFree(void *) { return hipSuccess; }
inline hipError_t hipHostRegister(void *, size_t, unsigned) { return hipSuccess; }
inline hipError_t hipHostUnregister(void *) { return hipSuccess; }
inline hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned) { return *device = host, hipSuccess; }
inline hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 127) & ~(size_t)127;
    return hipMalloc(pointer, *pitch * height);
}

// ---- Streams: what is enqueued is done at once, unless the stream is being captured ----------------------------------------------------
struct HostGraph;
struct HostStream { std::shared_ptr<HostGraph> capture; };
typedef HostStream *hipStream_t;
typedef std::function<void()> HostOperation;
struct HostGraph { std::vector<HostOperation> operations; };
struct HostEvent { HostStream *captured = nullptr; };
typedef HostEvent *hipEvent_t;

inline hipError_t host_enqueue(hipStream_t stream, HostOperation operation)
{
    if (stream && stream->capture) stream->capture->operations.push_back(operation);
    else operation();
    return hipSuccess;
}

enum { hipStreamDefault = 0, hipStreamNonBlocking = 1 };
enum { hipEventDefault = 0, hipEventBlockingSync = 1, hipEventDisableTiming = 2, hipEventInterprocess = 4 };
typedef void (*hipStreamCallback_t)(hipStream_t, hipError_t, void *);
inline hipError_t hipStreamCreate(hipStream_t *stream) { return *stream = new HostStream, hipSuccess; }
inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned) { return hipStreamCreate(stream); }
inline hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned, int) { return hipStreamCreate(stream); }
inline hipError_t hipStreamDestroy(hipStream_t stream) { return delete stream, hipSuccess; }
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamQuery(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void *data, unsigned)
{
    return host_enqueue(stream, [=] { call(stream, hipSuccess, data); });
}
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned)
{
    // A stream that waits for one that is captured is captured too.
    if (event->captured && event->captured->capture) stream->capture = event->captured->capture;
    return hipSuccess;
}
inline hipError_t hipStreamWriteValue32(hipStream_t stream, void *to, unsigned value, unsigned)
{
    return host_enqueue(stream, [=] { *(volatile uint32_t *)to = value; });
}
inline hipError_t hipStreamWriteValue64(hipStream_t stream, void *to, uint64_t value, unsigned)
{
    return host_enqueue(stream, [=] { *(volatile uint64_t *)to = value; });
}

inline hipError_t hipEventCreate(hipEvent_t *event) { return *event = new HostEvent, hipSuccess; }
inline hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned) { return hipEventCreate(event); }
inline hipError_t hipEventDestroy(hipEvent_t event) { return delete event, hipSuccess; }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr)
{
    event->captured = stream && stream->capture ? stream : nullptr;
    return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventQuery(hipEvent_t) { return hipSuccess; }

// ---- Copies and fills ----------------------------------------------------------------------------------------------------------------
inline hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind, hipStream_t stream = nullptr)
{
    return host_enqueue(stream, [=] { memmove(to, from, bytes); });
}
inline hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) { return hipMemcpyAsync(to, from, bytes, kind); }
inline hipError_t hipMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, hipStream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream);
}
inline hipError_t hipMemcpyPeer(void *to, int, const void *from, int, size_t bytes) { return hipMemcpy(to, from, bytes, hipMemcpyDefault); }
inline hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                   hipMemcpyKind, hipStream_t stream = nullptr)
{
    return host_enqueue(stream, [=] {
        for (size_t y = 0; y < height; y++) memmove((char *)to + y * to_pitch, (const char *)from + y * from_pitch, width);
    });
}
inline hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              hipMemcpyKind kind)
{
    return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind);
}
template <class T> void host_fill(void *to, T value, size_t count)
{
    for (size_t i = 0; i < count; i++) memcpy((char *)to + i * sizeof(T), &value, sizeof(T));
}
inline hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream = nullptr)
{
    return host_enqueue(stream, [=] { memset(to, value, bytes); });
}
inline hipError_t hipMemset(void *to, int value, size_t bytes) { return hipMemsetAsync(to, value, bytes); }
typedef void *hipDeviceptr_t;
inline hipError_t hipMemsetD8(void *to, unsigned char value, size_t count) { return host_fill(to, value, count), hipSuccess; }
inline hipError_t hipMemsetD16(void *to, unsigned short value, size_t count) { return host_fill(to, value, count), hipSuccess; }
inline hipError_t hipMemsetD32(void *to, int value, size_t count) { return host_fill(to, value, count), hipSuccess; }
inline hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    for (size_t y = 0; y < height; y++) memset((char *)to + y * pitch, value, width);
    return hipSuccess;
}

struct hipExtent { size_t width, height, depth; };
struct hipPos { size_t x, y, z; };
struct hipPitchedPtr { void *ptr; size_t pitch, xsize, ysize; };
struct hipMemcpy3DParms {
    void *srcArray; hipPos srcPos; hipPitchedPtr srcPtr; void *dstArray; hipPos dstPos; hipPitchedPtr dstPtr; hipExtent extent;
    hipMemcpyKind kind;
};
inline hipExtent make_hipExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
inline hipPos make_hipPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline hipPitchedPtr make_hipPitchedPtr(void *pointer, size_t pitch, size_t x, size_t y) { return {pointer, pitch, x, y}; }
inline hipError_t hipMalloc3D(hipPitchedPtr *made, hipExtent extent)
{
    made->xsize = extent.width, made->ysize = extent.height;
    return hipMallocPitch(&made->ptr, &made->pitch, extent.width, extent.height * extent.depth);
}
inline char *host_place(const hipPitchedPtr &in, hipPos at, size_t y, size_t z)
{
    return (char *)in.ptr + ((at.z + z) * in.ysize + at.y + y) * in.pitch + at.x;
}
inline hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *given, hipStream_t stream = nullptr)
{
    hipMemcpy3DParms p = *given;
    return host_enqueue(stream, [=] {
        for (size_t z = 0; z < p.extent.depth; z++)
            for (size_t y = 0; y < p.extent.height; y++)
                memmove(host_place(p.dstPtr, p.dstPos, y, z), host_place(p.srcPtr, p.srcPos, y, z), p.extent.width);
    });
}
inline hipError_t hipMemcpy3D(const hipMemcpy3DParms *given) { return hipMemcpy3DAsync(given); }

#define HIP_SYMBOL(x) x
template <class T> hipError_t hipMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0)
{
    return memcpy((char *)&symbol + offset, from, bytes), hipSuccess;
}
template <class T> hipError_t hipMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0)
{
    return memcpy(to, (const char *)&symbol + offset, bytes), hipSuccess;
}
template <class T> hipError_t hipGetSymbolAddress(void **to, T &symbol) { return *to = (void *)&symbol, hipSuccess; }
template <class T> hipError_t hipGetSymbolSize(size_t *size, const T &) { return *size = sizeof(T), hipSuccess; }

// ---- Launches ------------------------------------------------------------------------------------------------------------------------
template <class... P, class... A>
hipError_t host_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, hipStream_t stream, A... arguments)
{
    return host_enqueue(stream, [=] { host_run(grid, block, shared, [=] { kernel((P)arguments...); }); });
}
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) host_launch(kernel, grid, block, shared, stream, ##__VA_ARGS__)

#include "graph.h"
#include "module.h"
#include "ipc.h"
