/* A program made for profilers runs without one: NVTX's marks and ranges, names of streams and events, and the profiler's switches around work
   whose result is checked. NVTX is headers only; it looks for a tool by NVTX_INJECTION64_PATH.

   usage: markers */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include "check.h"

enum { SIZE = 100000 };

/* Of headers that the toolchain's packages leave out. */
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
CUresult cuProfilerInitialize(const char *, const char *, int);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

int main(void) {
    /* Marks come before the first call of CUDA. */
    nvtxInitialize(NULL);
    nvtxMarkA("begin");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("regauge.test");
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff00ff00;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "fill");
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;

    /* As recorded: the oldest switch is gone, the others want a context. */
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuProfilerInitialize("", "/dev/null", 0));
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuProfilerStart());
    OK(cuInit(0));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuProfilerStart());
    OK(cudaProfilerStart());

    cudaStream_t stream;
    cudaEvent_t event;
    unsigned char *device, *host = malloc(SIZE);
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    OK(cudaMalloc((void **)&device, SIZE));
    nvtxNameCudaDeviceA(0, "device");
    nvtxNameCudaStreamA(stream, "stream");
    nvtxNameCudaEventA(event, "event");
    nvtxNameCuStreamA((CUstream)stream, "stream");
    for (int round = 0; round < 100; round++) {
        nvtxRangePushA("round");
        attributes.payload.ullValue = (unsigned)round;
        nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &attributes);
        OK(cudaMemsetAsync(device, round, SIZE, stream));
        OK(cudaEventRecord(event, stream));
        nvtxDomainRangeEnd(domain, range);
        if (round % 10 == 0) {
            nvtxRangePushA("back");
            OK(cudaMemcpyAsync(host, device, SIZE, cudaMemcpyDeviceToHost, stream));
            OK(cudaStreamSynchronize(stream));
            for (int i = 0; i < SIZE; i++)
                if (host[i] != round) DIE("round %d: byte %d is %d", round, i, host[i]);
            nvtxRangePop();
        }
        nvtxRangePop();
    }
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    OK(cudaProfilerStop());
    /* Stopped already. */
    OK(cudaProfilerStop());
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(device));
    nvtxDomainDestroy(domain);
    free(host);
    printf("100 rounds within marks and ranges\n");
    return 0;
}
