/* The symmetric window of ROCm/mori#544 between processes: each rank makes memory without an address, sends it to the others as a
   descriptor over a Unix socket, and maps everybody's at one range of addresses, its own a second time. A kernel stores a chunk into
   every rank's part through an array of pointers. All N x N chunks are checked, through the window and through the owner's first mapping.

   Windows are taken down in every order that the calls allow, another in each cycle and rank. Free memory and open descriptors
   are the same after every cycle from the second on. One window is left open at exit.

   usage: symmetric_window [--ranks N] [--cycles N] [--mib N] [--seconds N]

   A rank that takes longer than --seconds (110) is ended.

   Exit status 0: every element arrived, nothing leaked, nothing crashed. */
#include "world.h"

#include <sys/socket.h>

static const CUmemAllocationHandleType FD = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, FABRIC = CU_MEM_HANDLE_TYPE_FABRIC;

static int cycles = 6, mib = 4;
static size_t granularity;
/* Of every pair of ranks, an end each. */
static int sockets[MOST_RANKS][MOST_RANKS];

/* What a rank tells the others. */
struct card {
    size_t size, available;
};
static struct card *card(int rank) { return (struct card *)world->board + rank; }

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* block b: to[b][offset + i] = value + b + i, for all i < words */
    ".visible .entry put(.param .u64 to, .param .u64 offset, .param .u32 value, .param .u32 words) {\n"
    " .reg .u64 %a; .reg .u64 %b; .reg .u32 %i; .reg .u32 %n; .reg .u32 %t; .reg .u32 %v; .reg .u32 %w; .reg .pred %p;\n"
    " ld.param.u64 %a, [to]; ld.param.u32 %v, [value]; ld.param.u32 %n, [words];\n"
    " mov.u32 %t, %ctaid.x; add.u32 %v, %v, %t; mul.wide.u32 %b, %t, 8; add.u64 %a, %a, %b; ld.global.u64 %a, [%a];\n"
    " ld.param.u64 %b, [offset]; add.u64 %a, %a, %b; mov.u32 %i, %tid.x; mov.u32 %t, %ntid.x;\n"
    "LOOP: setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
    " mul.wide.u32 %b, %i, 4; add.u64 %b, %a, %b; add.u32 %w, %v, %i; st.global.u32 [%b], %w; add.u32 %i, %i, %t; bra LOOP;\n"
    "DONE: ret; }\n";

static CUfunction put;

static void send_descriptor(int to, int fd) {
    char byte = (char)me;
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (sendmsg(sockets[me][to], &message, 0) != 1) DIE("no descriptor was sent to %d", to);
}

static int receive_descriptor(int from) {
    char byte;
    int fd = -1;
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(sockets[me][from], &message, 0) != 1 || byte != from) DIE("no descriptor came from %d", from);
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

static CUmemAllocationProp properties(CUmemAllocationHandleType handle_type) {
    CUmemAllocationProp prop = {0};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = handle_type;
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    return prop;
}

static void give_access(CUdeviceptr address, size_t size) {
    CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemSetAccess(address, size, &access, 1));
}

struct window {
    size_t size;
    CUdeviceptr own, flat;
    /* The rank's own is borrowed: it is the handle that it made. */
    CUmemGenericAllocationHandle memory[MOST_RANKS];
};

static CUdeviceptr part(const struct window *window, int rank) { return window->flat + rank * window->size; }

static void open_window(struct window *window) {
    CUmemAllocationProp prop = properties(FD);
    int fd;
    window->size = ((size_t)mib << 20) / granularity * granularity;
    OK(cuMemCreate(&window->memory[me], window->size, &prop, 0));
    OK(cuMemAddressReserve(&window->own, window->size, granularity, 0, 0));
    OK(cuMemMap(window->own, window->size, 0, window->memory[me], 0));
    give_access(window->own, window->size);
    OK(cuMemsetD32(window->own, 0xA0u + me, window->size / 4));
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&fd, window->memory[me], FD, 0));
    card(me)->size = window->size;
    barrier();
    OK(cuMemAddressReserve(&window->flat, window->size * ranks, granularity, 0, 0));
    for (int rank = 0; rank < ranks; rank++)
        if (rank != me) send_descriptor(rank, fd);
    if (close(fd)) DIE("the descriptor was not ours to close");
    for (int rank = 0; rank < ranks; rank++) {
        if (rank != me) {
            int peer = receive_descriptor(rank);
            if (card(rank)->size != window->size) DIE("rank %d has another size", rank);
            OK(cuMemImportFromShareableHandle(&window->memory[rank], (void *)(intptr_t)peer, FD));
            /* As mori does: before the memory is mapped. */
            close(peer);
        }
        OK(cuMemMap(part(window, rank), window->size, 0, window->memory[rank], 0));
        give_access(part(window, rank), window->size);
    }
    barrier();
}

/* Takes a window down; `order` chooses among the orders that are allowed: handles before or after mappings, the first mapping
   before or after the window, ranks up or down, all parts at once or one by one. */
static void close_window(struct window *window, unsigned order) {
    int early = order & 1, own_first = order >> 1 & 1, down = order >> 2 & 1, at_once = order >> 3 & 1;
    OK(cuCtxSynchronize());
    if (early)
        for (int rank = 0; rank < ranks; rank++) OK(cuMemRelease(window->memory[rank]));
    if (own_first) {
        OK(cuMemUnmap(window->own, window->size));
        OK(cuMemAddressFree(window->own, window->size));
    }
    if (at_once) OK(cuMemUnmap(window->flat, window->size * ranks));
    else
        for (int i = 0; i < ranks; i++) {
            int rank = down ? ranks - 1 - i : i;
            OK(cuMemUnmap(part(window, rank), window->size));
            if (!early && rank != me) OK(cuMemRelease(window->memory[rank]));
        }
    OK(cuMemAddressFree(window->flat, window->size * ranks));
    if (!own_first) {
        OK(cuMemUnmap(window->own, window->size));
        OK(cuMemAddressFree(window->own, window->size));
    }
    if (!early) {
        for (int rank = 0; at_once && rank < ranks; rank++)
            if (rank != me) OK(cuMemRelease(window->memory[rank]));
        OK(cuMemRelease(window->memory[me]));
    }
    /* Each handle has ended, in whatever order. */
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(window->memory[me]));
}

static void check_chunk(const char *where, CUdeviceptr from, uint32_t value, uint32_t words, uint32_t *host) {
    OK(cuMemcpyDtoH(host, from, words * 4));
    for (uint32_t i = 0; i < words; i++)
        if (host[i] != value + i) DIE("%s: element %u is %#x, not %#x", where, i, host[i], value + i);
}

/* Every rank stores a chunk into every rank's part. */
static void all_to_all(struct window *window, uint32_t cycle, CUdeviceptr pointers) {
    CUdeviceptr parts[MOST_RANKS];
    uint32_t words = (uint32_t)(window->size / 4 / (ranks + 1)), value;
    uint64_t offset = (uint64_t)words * 4 * me;
    uint32_t *host = malloc(words * 4);
    for (int rank = 0; rank < ranks; rank++) {
        OK(cuMemcpyDtoH(&value, part(window, rank), 4));
        if (value != 0xA0u + rank) DIE("rank %d's part holds %#x before anybody stored", rank, value);
        parts[rank] = part(window, rank);
    }
    OK(cuMemcpyHtoD(pointers, parts, sizeof parts));
    barrier();
    value = cycle << 24 | (uint32_t)me << 16;
    void *arguments[] = {&pointers, &offset, &value, &words};
    OK(cuLaunchKernel(put, ranks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    OK(cuCtxSynchronize());
    barrier();
    for (int source = 0; source < ranks; source++) {
        uint64_t at = (uint64_t)words * 4 * source;
        uint32_t wanted = (cycle << 24 | (uint32_t)source << 16) + me;
        check_chunk("first mapping", window->own + at, wanted, words, host);
        check_chunk("own part of the window", part(window, me) + at, wanted, words, host);
    }
    /* What nobody stored to is as it was. */
    OK(cuMemcpyDtoH(&value, window->own + (uint64_t)words * 4 * ranks, 4));
    if (value != 0xA0u + me) DIE("the end of the part was overwritten with %#x", value);
    free(host);
    barrier();
}

/* As MPI layers see the window: memory of the GPU that maps it, which has no legacy handle. */
static void check_pointers(const struct window *window) {
    for (int rank = 0; rank < ranks; rank++) {
        unsigned type = 0, legacy = 9;
        int ordinal = -9;
        CUdeviceptr base;
        size_t size;
        CUmemGenericAllocationHandle memory;
        CUdeviceptr inside = part(window, rank) + window->size - 1;
        OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
        OK(cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inside));
        OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
        if (type != CU_MEMORYTYPE_DEVICE || legacy || ordinal != device) DIE("type %u, legacy %u, device %d", type, legacy, ordinal);
        OK(cuMemGetAddressRange(&base, &size, inside));
        if (base != part(window, rank) || size != window->size) DIE("an address range that is not the part's");
        OK(cuMemRetainAllocationHandle(&memory, (void *)inside));
        if (memory != window->memory[rank]) DIE("another handle at rank %d's part", rank);
        OK(cuMemRelease(memory));
        CUipcMemHandle none;
        GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&none, inside));
    }
    GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&(unsigned){0}, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, part(window, ranks)));
}

static void body(void) {
    struct window window = {0}, kept = {0};
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle memory;
    CUdeviceptr pointers;
    CUmodule module;
    size_t total;
    int supported, descriptors = 0;
    use_device();
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    if (!supported) {
        prop = properties(FD);
        GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&memory, 2 << 20, &prop, 0));
        if (me == 0) printf("no virtual memory here, and the calls say so\n");
        return;
    }
    /* A probe that fails must be an error code and nothing more. */
    prop = properties(FABRIC);
    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    GIVES(CUDA_ERROR_NOT_PERMITTED, cuMemCreate(&memory, granularity, &prop, 0));
    prop = properties(FD);
    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&put, module, "put"));
    OK(cuMemAlloc(&pointers, sizeof(CUdeviceptr) * MOST_RANKS));
    for (int cycle = 0; cycle < cycles; cycle++) {
        open_window(&window);
        all_to_all(&window, cycle + 1, pointers);
        if (cycle == 0) check_pointers(&window);
        barrier();
        close_window(&window, cycle + 5 * me);
        barrier();
        OK(cuMemGetInfo(&card(me)->available, &total));
        if (cycle == 1) descriptors = open_descriptors();
        if (cycle > 1 && open_descriptors() != descriptors) DIE("%d open descriptors, %d before", open_descriptors(), descriptors);
        static size_t available;
        if (cycle == 1) available = card(me)->available;
        if (cycle > 1 && card(me)->available != available) DIE("%zu bytes free, %zu before", card(me)->available, available);
        barrier();
        progress("cycle", cycle + 1, cycles);
    }
    open_window(&kept);
    if (me == 0) printf("%d ranks on %d GPUs: %d windows, %d chunks each, and one left open\n", ranks, devices, cycles, ranks * ranks);
}

int main(int argc, char **argv) {
    unsigned seconds = 110;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--ranks")) ranks = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--cycles")) cycles = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--mib")) mib = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--seconds")) seconds = (unsigned)atoi(argv[i + 1]);
        else return 2;
    }
    if (ranks < 1 || ranks > MOST_RANKS) return 2;
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)) return 2;
            sockets[a][b] = pair[0];
            sockets[b][a] = pair[1];
        }
    return run_ranks(body, seconds);
}
