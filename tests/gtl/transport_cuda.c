/* The message layer's runtime in CUDA: what the stand-in imports, and the driver's calls that the real one names in its messages. */
#include "transport.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) return error_;                                                                                     \
    } while (0)

static cudaStream_t streams[2];
static cudaEvent_t events[2];

int runtime_start(void) {
    for (int i = 0; i < 2; i++) {
        TRY(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        TRY(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    return 0;
}

int runtime_query(const void *pointer, struct gtl_place *place) {
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    unsigned type = 0, managed = 0, legacy = 0;
    unsigned long long id = 0;
    void *answers[] = {&type, &id, &managed, &legacy};
    memset(place, 0, sizeof *place);
    TRY(cuPointerGetAttributes(4, wanted, answers, (CUdeviceptr)pointer));
    if (type == CU_MEMORYTYPE_DEVICE && !managed && legacy) {
        CUdeviceptr base;
        size_t size;
        TRY(cuMemGetAddressRange(&base, &size, (CUdeviceptr)pointer));
        *place = (struct gtl_place){1, base, size, id};
        /* Blocking copies of the application are over before anybody reads the memory. */
        int yes = 1;
        TRY(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
    }
    return 0;
}

int runtime_register(void *segment, size_t bytes) { return (int)cudaHostRegister(segment, bytes, cudaHostRegisterPortable); }
int runtime_unregister(void *segment) { return (int)cudaHostUnregister(segment); }

int runtime_export(const struct gtl_place *place, unsigned char handle[64]) {
    return (int)cuIpcGetMemHandle((CUipcMemHandle *)handle, place->base);
}

int runtime_open(const unsigned char handle[64], size_t size, void **base) {
    CUipcMemHandle copy;
    (void)size;
    memcpy(&copy, handle, sizeof copy);
    return (int)cuIpcOpenMemHandle((CUdeviceptr *)base, copy, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

int runtime_close(void *base) { return (int)cuIpcCloseMemHandle((CUdeviceptr)base); }

int runtime_copy(int which, void *to, const void *from, size_t bytes) {
    TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streams[which]));
    return (int)cudaEventRecord(events[which], streams[which]);
}

int runtime_wait(int which) {
    cudaError_t state;
    while ((state = cudaEventQuery(events[which])) == cudaErrorNotReady) {
    }
    return (int)state;
}

int runtime_end(void) {
    for (int i = 0; i < 2; i++) {
        TRY(cudaEventDestroy(events[i]));
        TRY(cudaStreamDestroy(streams[i]));
    }
    return 0;
}
