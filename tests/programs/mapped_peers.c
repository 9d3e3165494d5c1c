/* Memory of one GPU in the virtual memory of others, in one process: every GPU's memory mapped side by side, access given to one GPU after the other,
 * used by kernels, fills and copies of those that have it and refused to those that do not, and copied between mappings of different GPUs.
 * Then the same bytes as dma-bufs; LARGE_BAR says that the host can map these.
 */
#include "world.h"

enum { MOST = 16 };

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* to[i] = from[i] + value, for all i < words */
    ".visible .entry add(.param .u64 to, .param .u64 from, .param .u32 value, .param .u32 words) {\n"
    " .reg .u64 %a; .reg .u64 %b; .reg .u64 %o; .reg .u32 %i; .reg .u32 %n; .reg .u32 %t; .reg .u32 %v; .reg .u32 %w; .reg .pred %p;\n"
    " ld.param.u64 %a, [to]; ld.param.u64 %b, [from]; ld.param.u32 %v, [value]; ld.param.u32 %n, [words];\n"
    " mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %w, %tid.x; add.u32 %i, %i, %w;\n"
    " mov.u32 %w, %nctaid.x; mul.lo.u32 %t, %t, %w;\n"
    "LOOP: setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
    " mul.wide.u32 %o, %i, 4; add.u64 %o, %o, %b; ld.global.u32 %w, [%o]; add.u32 %w, %w, %v;\n"
    " mul.wide.u32 %o, %i, 4; add.u64 %o, %o, %a; st.global.u32 [%o], %w; add.u32 %i, %i, %t; bra LOOP;\n"
    "DONE: ret; }\n";

static size_t unit;
static CUcontext contexts[MOST];
static CUfunction add[MOST];

static void give(CUdeviceptr address, size_t size, int to, CUmemAccess_flags flags) {
    CUmemAccessDesc wanted = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = to}, flags};
    OK(cuMemSetAccess(address, size, &wanted, 1));
}

static int access_of(CUdeviceptr address, int gpu) {
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu};
    unsigned long long flags = 99;
    OK(cuMemGetAccess(&flags, &location, address));
    return (int)flags;
}

static unsigned *host;

/* Every word of a mapping is first + step * its index. */
static void check(CUdeviceptr at, size_t bytes, unsigned first, unsigned step, const char *what) {
    memset(host, 0x5a, bytes);
    OK(cuMemcpyDtoH(host, at, bytes));
    for (size_t word = 0; word < bytes / 4; word++)
        if (host[word] != first + step * (unsigned)word)
            DIE("%s: word %zu is %#x, not %#x", what, word, host[word], first + step * (unsigned)word);
}

static void run(int gpu, CUdeviceptr to, CUdeviceptr from, unsigned value, unsigned words) {
    void *arguments[] = {&to, &from, &value, &words};
    OK(cuCtxSetCurrent(contexts[gpu]));
    OK(cuLaunchKernel(add[gpu], 8, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    OK(cuCtxSynchronize());
}

static void refused(void) {
    CUdeviceptr address = 0;
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
    printf("virtual memory is not supported here, and the calls say so\n");
}

/* The bytes through a descriptor: only what begins where its memory begins can be exported, since CUDA's call tells no offset. */
static void dma_buf(CUdeviceptr address, size_t bytes, unsigned first, unsigned step, int visible) {
    int fd = -1;
    OK(cuMemGetHandleForAddressRange(&fd, address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (visible) {
        unsigned *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (view == MAP_FAILED) DIE("a dma-buf cannot be mapped");
        for (size_t word = 0; word < bytes / 4; word++)
            if (view[word] != first + step * (unsigned)word) DIE("dma-buf: word %zu is %#x", word, view[word]);
        view[1] ^= 0xffff;
        OK(cuMemcpyDtoH(host, address, 8));
        if (host[1] != ((first + step) ^ 0xffff)) DIE("a store through a dma-buf is not in the memory");
        view[1] ^= 0xffff;
        munmap(view, bytes);
    }
    close(fd);
    fd = -2;
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, address + 65536, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, address, bytes + 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, address + 1, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (fd != -2) DIE("a refused export wrote a descriptor");
}

static void rank(void) {
    CUmemGenericAllocationHandle handles[MOST];
    CUdeviceptr window = 0, plain = 0;
    CUmodule module;
    int supported = 0, dma_bufs = 0;
    use_device();
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported) {
        refused();
        return;
    }
    OK(cuDeviceGetAttribute(&dma_bufs, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    for (int gpu = 0; gpu < devices; gpu++) {
        OK(cuDevicePrimaryCtxRetain(&contexts[gpu], gpu));
        OK(cuCtxSetCurrent(contexts[gpu]));
        OK(cuModuleLoadData(&module, ptx));
        OK(cuModuleGetFunction(&add[gpu], module, "add"));
    }
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    unsigned words = (unsigned)(unit / 4);
    host = malloc(unit);
    /* Of many pairs of GPUs a part of each memory must do: kernels are interpreted. */
    const unsigned some = devices > 2 ? words / 16 : words;
    const size_t part = some * 4;
    OK(cuMemAddressReserve(&window, (size_t)devices * unit, 0, 0, 0));
    for (int gpu = 0; gpu < devices; gpu++) {
        prop.location.id = gpu;
        OK(cuMemCreate(&handles[gpu], unit, &prop, 0));
        OK(cuMemMap(window + gpu * unit, unit, 0, handles[gpu], 0));
    }
    /* Access grows from the owner to its neighbours, one after the other; who has none yet is refused. */
    for (int gpu = 0; gpu < devices; gpu++) give(window + gpu * unit, unit, gpu, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    for (int gpu = 0; gpu < devices; gpu++) {
        OK(cuCtxSetCurrent(contexts[gpu]));
        OK(cuMemsetD32(window + gpu * unit, 1000u * gpu, words));
        OK(cuCtxSynchronize());
    }
    for (int distance = 1; distance < devices; distance++)
        for (int owner = 0; owner < devices; owner++) {
            int user = (owner + distance) % devices;
            CUdeviceptr memory = window + owner * unit, own = window + user * unit;
            OK(cuCtxSetCurrent(contexts[user]));
            if (access_of(memory, user) != 0) DIE("GPU %d has access to GPU %d's memory", user, owner);
            GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(memory, 7, 1));
            give(memory, unit, user, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
            for (int gpu = 0; gpu < devices; gpu++) {
                int has = (gpu - owner + devices) % devices <= distance;
                if (access_of(memory, gpu) != (has ? 3 : 0)) DIE("GPU %d's access to GPU %d's memory is %d", gpu, owner, access_of(memory, gpu));
            }
            /* A fill by the user, read by the owner; a kernel of the user that reads there and writes at home, and back. */
            unsigned value = 0x01000000u * distance + 0x1000u * owner;
            OK(cuMemsetD32(memory, value, words));
            OK(cuCtxSynchronize());
            OK(cuCtxSetCurrent(contexts[owner]));
            check(memory, unit, value, 0, "a neighbour's fill");
            run(user, own, memory, 5, some);
            check(own, part, value + 5, 0, "a kernel that reads a neighbour's memory");
            for (unsigned word = 0; word < some; word++) host[word] = value + 3 * word;
            OK(cuMemcpyHtoD(own, host, part));
            run(user, memory, own, 11, some);
            OK(cuCtxSetCurrent(contexts[owner]));
            check(memory, part, value + 11, 3, "a kernel that writes a neighbour's memory");
            /* And the copy engines, for the user: the owner may not look into its neighbour's yet. */
            OK(cuCtxSetCurrent(contexts[user]));
            OK(cuMemcpyDtoD(own, memory, part));
            OK(cuCtxSynchronize());
            check(own, part, value + 11, 3, "a copy between two GPUs' mappings");
        }
    /* One kernel over all GPUs' memory. */
    for (int gpu = 0; gpu < devices; gpu++) {
        for (unsigned word = 0; word < words; word++) host[word] = 0xabc00000u + gpu * words + word;
        OK(cuMemcpyHtoD(window + gpu * unit, host, unit));
    }
    run(devices - 1, window, window, 1, words * devices);
    for (int gpu = 0; gpu < devices; gpu++) check(window + gpu * unit, unit, 0xabc00001u + gpu * words, 1, "a kernel over all mappings");
    /* Access taken from one leaves the others'. */
    give(window, unit, devices - 1, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (access_of(window, devices - 1) != 0) DIE("access that was taken is still there");
    OK(cuCtxSetCurrent(contexts[devices - 1]));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(window, 7, 1));
    OK(cuCtxSetCurrent(contexts[0]));
    check(window, unit, 0xabc00001u, 1, "the owner's view after that");
    if (dma_bufs) {
        int large_bar = getenv("LARGE_BAR") != NULL;
        dma_buf(window, unit, 0xabc00001u, 1, large_bar);
        OK(cuMemAlloc(&plain, unit));
        OK(cuMemcpyDtoD(plain, window, unit));
        OK(cuCtxSynchronize());
        dma_buf(plain, unit, 0xabc00001u, 1, large_bar);
        OK(cuMemFree(plain));
        printf("the same bytes %s as dma-bufs\n", large_bar ? "were seen" : "could be exported");
    }
    for (int gpu = 0; gpu < devices; gpu++) {
        OK(cuMemUnmap(window + gpu * unit, unit));
        OK(cuMemRelease(handles[gpu]));
    }
    OK(cuMemAddressFree(window, (size_t)devices * unit));
    printf("memory of %d GPUs mapped by %d GPUs\n", devices, devices);
}

int main(void) {
    ranks = 1;
    return run_ranks(rank, 110);
}
