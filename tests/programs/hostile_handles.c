/* Handles of memory and events that nobody made, or that lead nowhere any more: an error each time, as recorded on NVIDIA's driver for handles it
 * does not know (1 for memory, 205 for events), and nothing left behind. Never a crash, and never other memory than the block that the handle
 * names.
 *
 *   hostile_handles [--turns N] [--seed N] [--forge 1]
 *
 * Rank 0 exports; rank 1 opens. A handle carries a checksum, which whoever wants to do harm can compute: with --forge many of the handles have a right
 * one, and differ anywhere, in the 32 bytes, too, that are ROCr's own and that ROCr believes. Of memory only the very handle opens that its owner made.
 */
#include "world.h"


enum { BYTES = 3 << 20, SECRET = 2 << 20 };

static struct board {
    CUipcMemHandle memory, freed;
    CUipcEventHandle event, destroyed;
} *board;

static unsigned turns = 400;
static int forge;
static uint64_t state = 88172645463325252;

static uint64_t random64(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* The checksum of both kinds of handle: FNV-1a of the first 60 bytes. */
static void seal(unsigned char *handle) {
    uint32_t sum = 0x811c9dc5;
    for (int i = 0; i < 60; i++) sum = (sum ^ handle[i]) * 0x01000193;
    memcpy(handle + 60, &sum, 4);
}

static unsigned long tried, opened;

/* Opens memory: the one handle that was exported, whatever else may seem to name the block. */
static void memory(const unsigned char *handle, int may_open, const char *what) {
    CUipcMemHandle copy;
    CUdeviceptr at = 0, base = 0;
    size_t size = 0;
    unsigned char byte[2] = {0, 0};
    memcpy(&copy, handle, sizeof copy);
    may_open = may_open && !memcmp(&copy, &board->memory, sizeof copy);
    CUresult result = cuIpcOpenMemHandle(&at, copy, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    tried++;
    if (result == CUDA_SUCCESS) {
        if (!may_open) DIE("%s: opens", what);
        OK(cuMemGetAddressRange(&base, &size, at));
        if (base != at || size != BYTES) DIE("%s: opens %zu bytes", what, size);
        OK(cuMemcpyDtoH(byte, at, 1));
        OK(cuMemcpyDtoH(byte + 1, at + size - 1, 1));
        if (byte[0] != 0x41 || byte[1] != 0x41) DIE("%s: opens other memory (%#x, %#x)", what, byte[0], byte[1]);
        OK(cuIpcCloseMemHandle(at));
        opened++;
    } else if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_INVALID_CONTEXT) {
        DIE("%s: gives %d", what, result);
    }
}

static void event(const unsigned char *handle, int may_open, const char *what) {
    CUipcEventHandle copy;
    CUevent opened_event = NULL;
    memcpy(&copy, handle, sizeof copy);
    CUresult result = cuIpcOpenEventHandle(&opened_event, copy);
    tried++;
    if (result == CUDA_SUCCESS) {
        if (!may_open) DIE("%s: opens", what);
        OK(cuEventQuery(opened_event));
        OK(cuEventDestroy(opened_event));
        opened++;
    } else if (result != CUDA_ERROR_MAP_FAILED && result != CUDA_ERROR_INVALID_CONTEXT) {
        DIE("%s: gives %d", what, result);
    }
}

typedef void opener(const unsigned char *, int, const char *);

static void attack(opener *open, const void *good, const void *stale, const void *other_kind) {
    unsigned char handle[64];
    memset(handle, 0, 64);
    open(handle, 0, "zeroes");
    memset(handle, 0xff, 64);
    open(handle, 0, "ones");
    open(stale, 0, "a handle of something that is gone");
    open(other_kind, 0, "a handle of the other kind");
    memcpy(handle, other_kind, 64);
    memcpy(handle + 56, (const unsigned char *)good + 56, 4);
    seal(handle);
    if (forge) open(handle, 1, "a handle of the other kind under this one's name");
    for (int bit = 0; bit < 512; bit++) {
        memcpy(handle, good, 64);
        handle[bit / 8] ^= 1 << bit % 8;
        open(handle, 0, "one bit turned");
        if (!forge) continue;
        seal(handle);
        open(handle, 1, "one bit turned under a right checksum");
    }
    for (int length = 0; length < 64; length++) {
        memset(handle, 0, 64);
        memcpy(handle, good, length);
        if (memcmp(handle, good, 64)) open(handle, 0, "cut short");
        if (!forge || length >= 60) continue;
        memcpy(handle + 56, (const unsigned char *)good + 56, 4);
        seal(handle);
        open(handle, 1, "cut short under a right checksum");
    }
    for (unsigned turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 8; i++) {
            uint64_t word = random64();
            memcpy(handle + 8 * i, &word, 8);
        }
        open(handle, 0, "random bytes");
        if (!forge) continue;
        memcpy(handle + 56, (const unsigned char *)good + 56, 4);
        seal(handle);
        open(handle, 1, "random bytes under a right checksum");
        /* The right handle with some bytes of the wrong one, or of chance. */
        memcpy(handle, good, 64);
        for (uint64_t many = random64() % 4 + 1; many > 0; many--) {
            uint64_t at = random64() % 56;
            handle[at] = turn % 2 ? (unsigned char)random64() : ((const unsigned char *)stale)[at];
        }
        seal(handle);
        open(handle, 1, "a mixture");
    }
}

static void rank(void) {
    board = (struct board *)world->board;
    use_device();
    CUdeviceptr block = 0, freed = 0, secret = 0;
    CUevent alive = NULL, gone;
    if (me == 0) {
        OK(cuMemAlloc(&block, BYTES));
        OK(cuMemAlloc(&secret, SECRET));
        OK(cuMemAlloc(&freed, BYTES));
        OK(cuMemsetD8(block, 0x41, BYTES));
        OK(cuMemsetD8(secret, 0x66, SECRET));
        OK(cuIpcGetMemHandle(&board->memory, block));
        OK(cuIpcGetMemHandle(&board->freed, freed));
        OK(cuMemFree(freed));
        OK(cuEventCreate(&alive, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
        OK(cuEventCreate(&gone, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
        OK(cuIpcGetEventHandle(&board->event, alive));
        OK(cuIpcGetEventHandle(&board->destroyed, gone));
        OK(cuEventDestroy(gone));
        OK(cuCtxSynchronize());
    }
    barrier();
    if (me == 1) {
        memory((unsigned char *)&board->memory, 1, "the right handle");
        event((unsigned char *)&board->event, 1, "the right handle");
        int before = open_descriptors();
        attack(memory, &board->memory, &board->freed, &board->event);
        attack(event, &board->event, &board->destroyed, &board->memory);
        /* Another user's: the exporter has told its own user's processes only. */
        if (geteuid() == 0 && seteuid(65534) == 0) {
            memory((unsigned char *)&board->memory, 0, "another user's memory");
            event((unsigned char *)&board->event, 0, "another user's event");
            if (seteuid(0)) DIE("not root again");
        }
        if (open_descriptors() > before + 2) DIE("%d descriptors, %d before", open_descriptors(), before);
        unsigned long until_now = opened;
        memory((unsigned char *)&board->memory, 1, "the right handle");
        event((unsigned char *)&board->event, 1, "the right handle");
        if (opened != until_now + 2) DIE("the right handles do not open any more");
        printf("%lu handles tried, %lu of them opened what they name\n", tried, opened);
    }
    barrier();
    if (me == 0) {
        unsigned char bytes[2];
        OK(cuMemcpyDtoH(bytes, secret, 1));
        OK(cuMemcpyDtoH(bytes + 1, secret + SECRET - 1, 1));
        if (bytes[0] != 0x66 || bytes[1] != 0x66) DIE("memory that was never exported changed");
        OK(cuEventDestroy(alive));
        OK(cuMemFree(secret));
        OK(cuMemFree(block));
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--turns")) turns = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--forge")) forge = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--seed")) state ^= strtoull(argv[i + 1], NULL, 0) * 0x9e3779b97f4a7c15;
        else return 2;
    }
    return run_ranks(rank, 100);
}
