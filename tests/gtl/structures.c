/* The structures of a runtime's version, filled by its library: every field where the headers have it, no byte past the end.
 *
 * FATBIN names the fat binary of reductions.cu.
 *
 * usage: structures RUNTIME_VERSION SMALLEST_DRIVER_VERSION
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) {                                                                                                  \
            printf("%s: %d (%s)\n", #call, error_, cudaGetErrorString((cudaError_t)error_));                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf(__VA_ARGS__);                                                                                       \
            printf(" (%s)\n", #condition);                                                                             \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

/* A structure between bytes that nobody may touch. */
#define GUARDED(type)                                                                                                  \
    struct {                                                                                                           \
        unsigned char before[64];                                                                                      \
        type value;                                                                                                    \
        unsigned char after[1024];                                                                                     \
    }
#define PREPARE(guarded) memset(&guarded, 0xa5, sizeof guarded)
#define INTACT(guarded)                                                                                                \
    CHECK(all(guarded.before, sizeof guarded.before) && all(guarded.after, sizeof guarded.after),                      \
          "bytes around a structure are overwritten: %s", #guarded)
static int all(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0xa5) return 0;
    return 1;
}

static long long attribute(enum cudaDeviceAttr which) {
    int value = -12345;
    OK(cudaDeviceGetAttribute(&value, which, 1));
    return value;
}
#define SAME(field, which)                                                                                             \
    CHECK((long long)properties.value.field == attribute(which), "%s = %lld, the attribute is %lld", #field,           \
          (long long)properties.value.field, attribute(which))

static void device(void) {
    GUARDED(struct cudaDeviceProp) properties;
    PREPARE(properties);
    OK(cudaGetDeviceProperties(&properties.value, 1));
    INTACT(properties);
    CHECK(memchr(properties.value.name, 0, sizeof properties.value.name) != NULL, "the name has no end");
    SAME(warpSize, cudaDevAttrWarpSize);
    SAME(major, cudaDevAttrComputeCapabilityMajor);
    SAME(multiProcessorCount, cudaDevAttrMultiProcessorCount);
    SAME(surfaceAlignment, cudaDevAttrSurfaceAlignment);
    SAME(pciBusID, cudaDevAttrPciBusId);
    SAME(memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
    SAME(l2CacheSize, cudaDevAttrL2CacheSize);
    SAME(sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    SAME(cooperativeLaunch, cudaDevAttrCooperativeLaunch);
    SAME(maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor);
    SAME(reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock);
#if CUDART_VERSION >= 12000
    SAME(hostRegisterSupported, cudaDevAttrHostRegisterSupported);
    SAME(ipcEventSupported, cudaDevAttrIpcEventSupport);
#endif
#if CUDART_VERSION >= 13000
    SAME(deviceNumaId, cudaDevAttrNumaId);
    SAME(hostNumaId, cudaDevAttrHostNumaId);
    SAME(gpuPciDeviceID, cudaDevAttrGpuPciDeviceId);
#else
    SAME(clockRate, cudaDevAttrClockRate);
    SAME(memoryClockRate, cudaDevAttrMemoryClockRate);
#endif
    struct cudaDeviceProp wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.major = 1;
    int chosen = -1;
    OK(cudaChooseDevice(&chosen, &wanted));
    CHECK(chosen == 0, "chose device %d", chosen);
}

static void pointers(void) {
    GUARDED(struct cudaPointerAttributes) attributes;
    char *memory;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&memory, 1000));
    PREPARE(attributes);
    OK(cudaPointerGetAttributes(&attributes.value, memory + 7));
    INTACT(attributes);
    CHECK(attributes.value.type == cudaMemoryTypeDevice, "type %d", attributes.value.type);
    CHECK(attributes.value.device == 1, "device %d", attributes.value.device);
    CHECK(attributes.value.devicePointer == memory + 7, "pointer %p", attributes.value.devicePointer);
#if CUDART_VERSION >= 13000
    for (int i = 0; i < 8; i++) CHECK(attributes.value.reserved[i] == 0, "reserved[%d]", i);
#endif
    OK(cudaFree(memory));
}

/* What nvcc's crt/host_runtime.h declares. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            dim3 *block, dim3 *grid, int *warp);

/* clang-format off */
__asm__(".pushsection .nv_fatbin, \"a\"\n"
        ".p2align 3\n"
        "structures_fatbin:\n"
        ".incbin \"" FATBIN "\"\n"
        ".popsection\n");
/* clang-format on */
extern const unsigned char structures_fatbin[] __attribute__((visibility("hidden")));
static struct {
    unsigned magic, version;
    const void *data;
    void *file;
} wrapper = {0x466243b1, 1, structures_fatbin, 0};

static void functions(void) {
    static char kernel;
    GUARDED(struct cudaFuncAttributes) attributes;
    void **module = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(module, &kernel, "fold_sum_f64", "fold_sum_f64", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    PREPARE(attributes);
    OK(cudaFuncGetAttributes(&attributes.value, &kernel));
    INTACT(attributes);
    CHECK(attributes.value.sharedSizeBytes == 256 * sizeof(double), "%zu bytes shared", attributes.value.sharedSizeBytes);
    CHECK(attributes.value.maxThreadsPerBlock == 1024, "%d threads", attributes.value.maxThreadsPerBlock);
    CHECK(attributes.value.maxDynamicSharedSizeBytes > 0, "%d dynamic", attributes.value.maxDynamicSharedSizeBytes);
    CHECK(attributes.value.preferredShmemCarveout == -1, "carve-out %d", attributes.value.preferredShmemCarveout);
#if CUDART_VERSION >= 12000
    CHECK(attributes.value.clusterDimMustBeSet == 0, "cluster %d", attributes.value.clusterDimMustBeSet);
#endif
}

static void events(void) {
    cudaEvent_t start, end;
    float milliseconds = -1;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, 0));
    OK(cudaEventRecord(end, 0));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds >= 0 && milliseconds < 10000, "%f ms", milliseconds);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
}

static void entry_points(void) {
    int (*version)(int *) = NULL;
    int found = 0, driver = 0;
#if CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointVersionNotSufficent;
    OK(cudaGetDriverEntryPoint("cuDriverGetVersion", (void **)&version, cudaEnableDefault, &status));
    CHECK(status == cudaDriverEntryPointSuccess, "status %d", status);
#else
    OK(cudaGetDriverEntryPoint("cuDriverGetVersion", (void **)&version, cudaEnableDefault));
    void *none = NULL;
    CHECK(cudaGetDriverEntryPoint("cuNoSuchFunction", &none, cudaEnableDefault) == cudaErrorSymbolNotFound, "found it");
    cudaGetLastError();
#endif
    if (version == NULL) {
        CHECK(version != NULL, "no entry point");
        return;
    }
    OK(version(&found));
    OK(cudaDriverGetVersion(&driver));
    CHECK(found == driver, "the driver says %d, the runtime says that it is %d", found, driver);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int runtime = 0, driver = 0;
    OK(cudaRuntimeGetVersion(&runtime));
    OK(cudaDriverGetVersion(&driver));
    CHECK(runtime == atoi(argv[1]), "runtime %d", runtime);
    CHECK(driver >= atoi(argv[2]), "driver %d", driver);
    device();
    pointers();
    functions();
    events();
    entry_points();
    if (failures) return 1;
    printf("runtime %d, driver %d\n", runtime, driver);
    return 0;
}
