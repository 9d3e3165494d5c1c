// Shared virtual memory: the program's own pages at their own addresses for the GPU, attributes and their answers, prefetch
// (argv[1]: kernels.cl, compiled). Skipped where the driver has none.
#define _GNU_SOURCE
#include "code.h"
#include <sys/mman.h>

enum { SIZE = 1 << 20 };

static struct machine m;

static void *pages(void)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED, "memory");
    return memory;
}

static uint64_t get(void *memory, size_t size, uint64_t attribute, uint64_t value)
{
    hsa_amd_svm_attribute_pair_t pair = {attribute, value};
    CHECK(hsa_amd_svm_attributes_get(memory, size, &pair, 1));
    return attribute == HSA_AMD_SVM_ATTRIB_ACCESS_QUERY ? pair.attribute : pair.value;
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    bool svm = false, everything = true;
    CHECK(hsa_system_get_info((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, &svm));
    if (!svm) {
        printf("svm: skipped, this driver has no shared virtual memory\n");
        return SKIPPED;
    }
    CHECK(hsa_system_get_info((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, &everything));
    unsigned *memory = pages();
    EXPECT(everything || get(memory, SIZE, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS,
           "no access before it is given");
    hsa_amd_svm_attribute_pair_t attributes[] = {
        {HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED},
        {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, gpu.handle},
        {HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 4},
    };
    CHECK(hsa_amd_svm_attributes_set(memory, SIZE, attributes, 3));
    EXPECT(get(memory, SIZE, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, "access");
    EXPECT(get(memory, SIZE, HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, 0) == HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED, "coarse-grained memory");
    EXPECT(get(memory, SIZE, HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 0) == 4, "the granularity");

    // The kernel works on the host's own addresses.
    struct code code = code_load(argv[1], gpu);
    hsa_queue_t *queue;
    hsa_signal_t done = signal_new(1);
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    enum { N = SIZE / 8 };
    float *x = (float *)memory, *y = x + N;
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 3;
    struct { float *y, *x; float a; unsigned n; } saxpy = {y, x, 2, N};
    dispatch(&m, queue, code_kernel(&code, "saxpy.kd"), N, 256, 0, &saxpy, sizeof saxpy, done);
    wait_for(done, "a kernel on shared memory");
    for (int i = 0; i < N; i++) EXPECT(y[i] == 2 * (float)i + 3, "y[%d], it is %g", i, (double)y[i]);

    // To the GPU and back: the contents stay.
    hsa_signal_store_relaxed(done, 1);
    CHECK(hsa_amd_svm_prefetch_async(memory, SIZE, gpu, 0, NULL, done));
    wait_for(done, "a prefetch to the GPU");
    EXPECT(get(memory, SIZE, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, 0) == gpu.handle, "the last prefetch");
    hsa_signal_store_relaxed(done, 1);
    dispatch(&m, queue, code_kernel(&code, "saxpy.kd"), N, 256, 0, &saxpy, sizeof saxpy, done);
    wait_for(done, "a kernel on prefetched memory");
    hsa_signal_store_relaxed(done, 1);
    CHECK(hsa_amd_svm_prefetch_async(memory, SIZE, m.cpu, 0, NULL, done));
    wait_for(done, "a prefetch to the host");
    for (int i = 0; i < N; i++) EXPECT(y[i] == 4 * (float)i + 3, "y[%d] twice, it is %g", i, (double)y[i]);

    // Access ends for a part of it.
    hsa_amd_svm_attribute_pair_t none = {HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS, gpu.handle};
    CHECK(hsa_amd_svm_attributes_set(memory, SIZE / 2, &none, 1));
    EXPECT(get(memory, SIZE / 2, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS, "no access to one half");
    EXPECT(get((char *)memory + SIZE / 2, SIZE / 2, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE,
           "access to the other half");
    // Registered memory: ROCr 6 takes the same way, so it has one address.
    char *locked = pages(), *device = NULL, *back = host_alloc(&m, SIZE);
    CHECK(hsa_amd_memory_lock(locked, SIZE, &gpu, 1, (void **)&device));
    // HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, which older headers and ROCr 5 lack.
    uint16_t extension = 0;
    if (hsa_system_get_info((hsa_system_info_t)0x208, &extension) == HSA_STATUS_SUCCESS && extension > 0)
        EXPECT(device == locked, "one address, not %p and %p", (void *)device, (void *)locked);
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    CHECK(hsa_amd_pointer_info(locked, &info, NULL, NULL, NULL));
    // Which leaves no trace of it in what ROCr knows.
    hsa_amd_pointer_type_t type = device == locked ? HSA_EXT_POINTER_TYPE_UNKNOWN : HSA_EXT_POINTER_TYPE_LOCKED;
    EXPECT(info.type == type, "a pointer of type %d, not %d", type, info.type);
    pattern_fill(locked, SIZE, 4);
    copy(back, m.cpu, device, gpu, SIZE);
    pattern_check(back, SIZE, 4, "registered memory");
    CHECK(hsa_amd_memory_unlock(locked));

    // What is unmapped is forgotten: new memory at the same address is nobody's but the host's.
    EXPECT(get((char *)memory + SIZE / 2, SIZE / 2, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE,
           "access before");
    EXPECT(munmap(memory, SIZE) == 0, "memory to be unmapped");
    EXPECT(mmap(memory, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == memory, "the same address");
    EXPECT(everything || get(memory, SIZE, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle) == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS,
           "no access to new memory");
    EXPECT(get(memory, SIZE, HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, 0) == HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED, "the default");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_shut_down());
    printf("svm: ok\n");
    return 0;
}
