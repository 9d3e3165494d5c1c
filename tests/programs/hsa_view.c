/* One memory, two runtimes asked: what HSA says about memory that the program got from CUDA, and what CUDA says, agree for every kind of memory.
   MPI libraries ask both about the same address.

   usage: hsa_view first|last    CUDA's library is loaded before or after hsa_init

   The HSA functions are linked, or (built with BY_NAME) found by name in the library's handle. Loaded last, CUDA's library cannot
   correct ROCr's answers about mappings; blocks of pools are right by construction. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cuda.h>

static int failures, corrected;

#define FAIL(...) (printf("line %d: ", __LINE__), printf(__VA_ARGS__), putchar('\n'), failures++)
#define EXPECT(condition) ((condition) ? 0 : FAIL("not so: %s", #condition))
#define MUST(call)                                              \
    do {                                                        \
        int status_ = (int)(call);                              \
        if (status_) { FAIL("%s gives %#x", #call, status_); exit(1); } \
    } while (0)

#ifdef BY_NAME
#define HSA(name) ((__typeof__(&name))find(libhsa, #name))
#else
#define HSA(name) name
#endif
#define CU_NAME(name) #name
#define CU(name) ((__typeof__(&name))find(libcuda, CU_NAME(name)))
static void *libhsa, *libcuda;

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) { FAIL("%s is not there", name); exit(1); }
    return symbol;
}

static hsa_amd_pointer_info_t ask(CUdeviceptr address) {
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    MUST(HSA(hsa_amd_pointer_info)((void *)address, &info, NULL, NULL, NULL));
    return info;
}

static hsa_device_type_t owner(hsa_amd_pointer_info_t info) {
    hsa_device_type_t type = 99;
    MUST(HSA(hsa_agent_get_info)(info.agentOwner, HSA_AGENT_INFO_DEVICE, &type));
    return type;
}

/* Both runtimes name the same block, from every byte of it. */
static void same_block(const char *what, CUdeviceptr base, size_t size, hsa_device_type_t device) {
    size_t offsets[] = {0, 1, size / 2, size - 1};
    for (int i = 0; i < 4; i++) {
        CUdeviceptr cuda_base = 0;
        size_t cuda_size = 0;
        hsa_amd_pointer_info_t info = ask(base + offsets[i]);
        MUST(CU(cuMemGetAddressRange)(&cuda_base, &cuda_size, base + offsets[i]));
        if (info.type != HSA_EXT_POINTER_TYPE_HSA) { FAIL("%s + %zu: HSA says type %d", what, offsets[i], info.type); continue; }
        if ((CUdeviceptr)info.agentBaseAddress != cuda_base || info.sizeInBytes != cuda_size || cuda_base != base || cuda_size != size)
            FAIL("%s + %zu: HSA says %p, %zu bytes; CUDA %#llx, %zu", what, offsets[i], info.agentBaseAddress, info.sizeInBytes, cuda_base, cuda_size);
        if (owner(info) != device) FAIL("%s: owned by another kind of device", what);
    }
    if (ask(base + size).type == HSA_EXT_POINTER_TYPE_HSA && ask(base + size).agentBaseAddress == (void *)base) FAIL("%s: goes on behind its end", what);
}

/* What a deallocation callback saw. */
struct farewell { int calls; unsigned cuda_knew; };
static void deallocated(void *address, void *data) {
    struct farewell *farewell = data;
    unsigned type;
    farewell->calls++;
    farewell->cuda_knew = CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)address) == CUDA_SUCCESS;
}

static void device_blocks(void) {
    size_t sizes[] = {1000, 4096, 1 << 20, 5 << 20, 2267136};
    for (int i = 0; i < 5; i++) {
        CUdeviceptr block;
        struct farewell farewell = {0}, taken_back = {0};
        hsa_amd_ipc_memory_t handle;
        MUST(CU(cuMemAlloc)(&block, sizes[i]));
        same_block("cuMemAlloc", block, sizes[i], HSA_DEVICE_TYPE_GPU);
        MUST(HSA(hsa_amd_ipc_memory_create)((void *)block, sizes[i], &handle));
        MUST(HSA(hsa_amd_register_deallocation_callback)((void *)block, deallocated, &farewell));
        MUST(CU(cuMemFree)(block));
        EXPECT(farewell.calls == 1 && !farewell.cuda_knew);
        EXPECT(taken_back.calls == 0);
        EXPECT(ask(block).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
    }
}

static void stream_ordered(void) {
    CUdeviceptr memory;
    MUST(CU(cuMemAllocAsync)(&memory, 100000, NULL));
    /* Part of a block, which HSA names as a whole. */
    hsa_amd_pointer_info_t info = ask(memory + 50000);
    EXPECT(info.type == HSA_EXT_POINTER_TYPE_HSA && owner(info) == HSA_DEVICE_TYPE_GPU);
    EXPECT((CUdeviceptr)info.agentBaseAddress <= memory && (CUdeviceptr)info.agentBaseAddress + info.sizeInBytes >= memory + 100000);
    CUipcMemHandle none;
    EXPECT(CU(cuIpcGetMemHandle)(&none, memory) == CUDA_ERROR_INVALID_VALUE);
    MUST(CU(cuMemFreeAsync)(memory, NULL));
    MUST(CU(cuStreamSynchronize)(NULL));
}

static void mappings(void) {
    size_t unit = 2 << 20;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr va;
    struct farewell farewell = {0}, taken_back = {0};
    int supported, fd;
    uint64_t offset;
    MUST(CU(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported) return;
    MUST(CU(cuMemAddressReserve)(&va, 4 * unit, 0, 0, 0));
    MUST(CU(cuMemCreate)(&memory, 2 * unit, &prop, 0));
    MUST(CU(cuMemMap)(va + unit, 2 * unit, 0, memory, 0));
    MUST(CU(cuMemSetAccess)(va + unit, 2 * unit, &access, 1));
    if (corrected) {
        hsa_agent_t *agents = NULL;
        uint32_t count = 0;
        hsa_amd_pointer_info_t info = {.size = sizeof info};
        hsa_amd_ipc_memory_t handle;
        same_block("cuMemMap", va + unit, 2 * unit, HSA_DEVICE_TYPE_GPU);
        MUST(HSA(hsa_amd_pointer_info)((void *)(va + unit), &info, malloc, &count, &agents));
        EXPECT(count == 1 && agents[0].handle == info.agentOwner.handle);
        MUST(HSA(hsa_amd_agents_allow_access)(1, agents, NULL, (void *)(va + unit)));
        free(agents);
        /* There is no legacy handle, on either side. */
        EXPECT(HSA(hsa_amd_ipc_memory_create)((void *)(va + unit), 2 * unit, &handle) != HSA_STATUS_SUCCESS);
        MUST(HSA(hsa_amd_register_deallocation_callback)((void *)(va + unit), deallocated, &farewell));
        MUST(HSA(hsa_amd_portable_export_dmabuf)((void *)(va + unit + 4096), 4096, &fd, &offset));
        EXPECT(offset == 4096 && lseek(fd, 0, SEEK_END) == (off_t)(2 * unit));
        close(fd);
    } else EXPECT(ask(va + unit).type != HSA_EXT_POINTER_TYPE_HSA);
    EXPECT(ask(va).type != HSA_EXT_POINTER_TYPE_HSA);
    MUST(CU(cuMemUnmap)(va + unit, 2 * unit));
    EXPECT(farewell.calls == corrected && !farewell.cuda_knew);
    EXPECT(ask(va + unit).type != HSA_EXT_POINTER_TYPE_HSA);
    /* The same address with other memory has no old callbacks, and one that was taken back is not called. */
    MUST(CU(cuMemMap)(va + unit, 2 * unit, 0, memory, 0));
    if (corrected) {
        MUST(HSA(hsa_amd_register_deallocation_callback)((void *)(va + unit), deallocated, &taken_back));
        MUST(HSA(hsa_amd_deregister_deallocation_callback)((void *)(va + unit), deallocated));
    }
    MUST(CU(cuMemUnmap)(va + unit, 2 * unit));
    EXPECT(farewell.calls == corrected && taken_back.calls == 0);
    MUST(CU(cuMemRelease)(memory));
    MUST(CU(cuMemAddressFree)(va, 4 * unit));
}

static void host_memory(void) {
    void *pinned, *space = aligned_alloc(4096, 5 * 4096);
    CUdeviceptr managed;
    MUST(CU(cuMemHostAlloc)(&pinned, 70000, 0));
    same_block("cuMemHostAlloc", (CUdeviceptr)pinned, 70000, HSA_DEVICE_TYPE_CPU);
    MUST(CU(cuMemFreeHost)(pinned));
    MUST(CU(cuMemAllocManaged)(&managed, 70000, CU_MEM_ATTACH_GLOBAL));
    same_block("cuMemAllocManaged", managed, 70000, HSA_DEVICE_TYPE_CPU);
    MUST(CU(cuMemFree)(managed));
    /* A range that neither begins nor ends with a page. */
    char *begin = (char *)space + 4096 + 100;
    MUST(CU(cuMemHostRegister)(begin, 9000, 0));
    hsa_amd_pointer_info_t info = ask((CUdeviceptr)begin + 4500);
    /* Where the driver has shared virtual memory ROCr 6 pins nothing, and knows nothing. */
    bool shared = false;
    MUST(HSA(hsa_system_get_info)((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, &shared));
    if (shared && !corrected) EXPECT(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN);
    else EXPECT(info.type == HSA_EXT_POINTER_TYPE_LOCKED && owner(info) == HSA_DEVICE_TYPE_CPU);
    if (corrected) {
        EXPECT(info.hostBaseAddress == begin && info.sizeInBytes == 9000);
        EXPECT(ask((CUdeviceptr)begin - 1).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
        EXPECT(ask((CUdeviceptr)begin + 9000).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
        EXPECT(ask((CUdeviceptr)begin + 8999).type == HSA_EXT_POINTER_TYPE_LOCKED);
        /* Every GPU may use it, whether ROCr or we say so. */
        hsa_agent_t *agents = NULL;
        uint32_t count = 0;
        hsa_amd_pointer_info_t listed = {.size = sizeof listed};
        int devices = 0;
        MUST(CU(cuDeviceGetCount)(&devices));
        MUST(HSA(hsa_amd_pointer_info)(begin, &listed, malloc, &count, &agents));
        EXPECT(count == (uint32_t)devices);
        for (uint32_t i = 0; i < count; i++) {
            hsa_device_type_t type = 99;
            MUST(HSA(hsa_agent_get_info)(agents[i], HSA_AGENT_INFO_DEVICE, &type));
            EXPECT(type == HSA_DEVICE_TYPE_GPU);
        }
        free(agents);
    }
    MUST(CU(cuMemHostUnregister)(begin));
    EXPECT(ask((CUdeviceptr)begin).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
    free(space);
}

int main(int argc, char **argv) {
    int last = argc > 1 && !strcmp(argv[1], "last");
    CUcontext context;
    libhsa = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libhsa) { FAIL("%s", dlerror()); return 1; }
    if (last) MUST(HSA(hsa_init)());
    libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libcuda) { FAIL("%s", dlerror()); return 1; }
    if (!last) MUST(HSA(hsa_init)());
    corrected = !last;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    device_blocks();
    stream_ordered();
    mappings();
    host_memory();
    printf("%d differences between the two runtimes\n", failures);
    return failures != 0;
}
