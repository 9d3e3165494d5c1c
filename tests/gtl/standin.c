/* A stand-in for the closed GPU transport layer of an MPI library: what it imports is the list that a linker once printed for
 * the real one (28 names of the runtime, four of the driver), and its kernels are registered as nvcc of CUDA 12.0 to 12.6
 * does: a fat binary behind a wrapper, stubs that pop their configuration and call cudaLaunchKernel, __cudaInitModule.
 *
 * cc -shared -fPIC -DFATBIN='"reductions.fatbin"' -I CUDA/include standin.c libcudart.so.VERSION libcuda.so.1
 */
#include "standin.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#if CUDA_VERSION < 12000
/* CUDA 12's headers give these names to the calls; CUDA 11's have them for those who ask. */
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWaitValue64 cuStreamWaitValue64_v2
#define cuStreamWriteValue64 cuStreamWriteValue64_v2
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags);
CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags);
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags);
#endif

/* What nvcc's crt/host_runtime.h declares. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            dim3 *block, dim3 *grid, int *warp);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
/* cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *) is in the headers of some versions. */
extern cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

/* clang-format off */
__asm__(".pushsection .nv_fatbin, \"a\"\n"
        ".p2align 3\n"
        "gtl_fatbin:\n"
        ".incbin \"" FATBIN "\"\n"
        ".popsection\n");
/* clang-format on */
extern const unsigned char gtl_fatbin[] __attribute__((visibility("hidden")));

static const struct {
    unsigned magic, version;
    const void *data;
    void *file;
} wrapper __attribute__((section(".nvFatBinSegment"), aligned(8), used)) = {0x466243b1, 1, gtl_fatbin, 0};

static void **module;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) return error_;                                                                                     \
    } while (0)

/* The launch stub that nvcc writes for a kernel: its address is what the kernel is known by. */
#define STUB(name)                                                                                                     \
    static int name(void *out, const void *in, unsigned long long count) {                                             \
        void *arguments[] = {&out, (void *)&in, &count};                                                               \
        dim3 grid, block;                                                                                              \
        size_t shared;                                                                                                 \
        cudaStream_t stream;                                                                                           \
        TRY(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));                                              \
        return (int)cudaLaunchKernel((const void *)name, grid, block, arguments, shared, stream);                      \
    }
#define STUBS(type)                                                                                                    \
    STUB(combine_sum_##type) STUB(combine_min_##type) STUB(combine_max_##type) STUB(combine_prod_##type)               \
    STUB(fold_sum_##type) STUB(fold_min_##type) STUB(fold_max_##type) STUB(fold_prod_##type)
STUBS(i32) STUBS(u64) STUBS(f32) STUBS(f64)

typedef int stub(void *, const void *, unsigned long long);
#define ENTRY(name) {name, #name}
#define ROW(kind, type)                                                                                                \
    {ENTRY(kind##_sum_##type), ENTRY(kind##_min_##type), ENTRY(kind##_max_##type), ENTRY(kind##_prod_##type)}
#define TABLE(kind) {ROW(kind, i32), ROW(kind, u64), ROW(kind, f32), ROW(kind, f64)}
static const struct kernel {
    stub *host;
    const char *name;
} combines[GTL_TYPES][GTL_OPERATIONS] = TABLE(combine), folds[GTL_TYPES][GTL_OPERATIONS] = TABLE(fold);
static const size_t sizes[GTL_TYPES] = {4, 8, 4, 8};

__attribute__((constructor)) static void register_all(void) {
    module = __cudaRegisterFatBinary((void *)&wrapper);
    for (int i = 0; i < GTL_TYPES * GTL_OPERATIONS; i++) {
        const struct kernel *of[] = {&combines[0][0] + i, &folds[0][0] + i};
        for (int k = 0; k < 2; k++)
            __cudaRegisterFunction(module, (const char *)of[k]->host, (char *)of[k]->name, of[k]->name, -1, 0, 0, 0, 0, 0);
    }
    __cudaRegisterFatBinaryEnd(module);
}

__attribute__((destructor)) static void unregister_all(void) { __cudaUnregisterFatBinary(module); }

enum { BLOCK = 256, BLOCKS = 64, STAGING = 1 << 20 };

static cudaStream_t stream, copies;
static cudaEvent_t done;
static char *staging;
static void *partials;

int gtl_init(void) {
    int count = 0;
    TRY(cudaGetDeviceCount(&count));
    if (count == 0) return (int)cudaErrorNoDevice;
    if (__cudaInitModule(module) != 1) return (int)cudaErrorInitializationError;
    TRY(cudaStreamCreate(&stream));
    TRY(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    TRY(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    TRY(cudaMallocHost((void **)&staging, STAGING));
    return (int)cudaMalloc(&partials, BLOCKS * sizeof(double));
}

int gtl_enable_peer(int device, void *context, int *possible) {
    int mine = -1;
    TRY(cudaGetDevice(&mine));
    TRY(cudaDeviceCanAccessPeer(possible, mine, device));
    return *possible ? (int)cuCtxEnablePeerAccess((CUcontext)context, 0) : 0;
}

/* As an MPI library's progress loop does: no blocking call. */
static int finish(cudaStream_t on) {
    TRY(cudaEventRecord(done, on));
    cudaError_t state;
    while ((state = cudaEventQuery(done)) == cudaErrorNotReady) {
    }
    return (int)state;
}

static int launch(const struct kernel *kernel, unsigned blocks, void *out, const void *in, size_t count) {
    dim3 grid = {blocks, 1, 1}, block = {BLOCK, 1, 1};
    if (__cudaPushCallConfiguration(grid, block, 0, stream)) return (int)cudaErrorUnknown;
    return kernel->host(out, in, count);
}

int gtl_combine(enum gtl_operation operation, enum gtl_type type, void *inout, const void *in, size_t count) {
    TRY(launch(&combines[type][operation], BLOCKS, inout, in, count));
    return finish(stream);
}

int gtl_fold(enum gtl_operation operation, enum gtl_type type, void *result, const void *in, size_t count) {
    TRY(launch(&folds[type][operation], BLOCKS, partials, in, count));
    TRY(launch(&folds[type][operation], 1, partials, partials, BLOCKS));
    TRY(cudaMemcpyAsync(result, partials, sizes[type], cudaMemcpyDeviceToHost, stream));
    return (int)cudaStreamSynchronize(stream);
}

int gtl_copy(void *to, const void *from, size_t bytes, int staged) {
    if (!staged) {
        TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, copies));
        return finish(copies);
    }
    for (size_t at = 0; at < bytes; at += STAGING) {
        size_t part = bytes - at < STAGING ? bytes - at : STAGING;
        TRY(cudaMemcpyAsync(staging, (const char *)from + at, part, cudaMemcpyDefault, copies));
        TRY(cudaMemcpyAsync((char *)to + at, staging, part, cudaMemcpyDefault, copies));
        TRY(finish(copies));
    }
    return 0;
}

int gtl_copy_registered(void *to, void *from, void *host, size_t bytes) {
    TRY(cudaHostRegister(host, bytes, cudaHostRegisterPortable));
    int error = gtl_copy(to, from, bytes, 0);
    TRY(cudaHostUnregister(host));
    return error;
}

int gtl_triggered(unsigned long long *flags, unsigned value) {
    CUdeviceptr at = (CUdeviceptr)flags;
    TRY(cuStreamWaitValue32(stream, at, value, CU_STREAM_WAIT_VALUE_GEQ));
    TRY(cuStreamWaitValue64(stream, at + 8, value, CU_STREAM_WAIT_VALUE_GEQ));
    TRY(cuStreamWriteValue64(stream, at + 16, value, CU_STREAM_WRITE_VALUE_DEFAULT));
    return finish(stream);
}

int gtl_bus_id(char *text, int length) {
    int device = -1;
    TRY(cudaGetDevice(&device));
    return (int)cudaDeviceGetPCIBusId(text, length, device);
}

const char *gtl_error(int error) { return cudaGetErrorString((cudaError_t)error); }

int gtl_finalize(void) {
    TRY(cudaFree(partials));
    TRY(cudaFreeHost(staging));
    TRY(cudaEventDestroy(done));
    TRY(cudaStreamDestroy(copies));
    return (int)cudaStreamDestroy(stream);
}
