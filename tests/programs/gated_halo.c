/* The halo exchange of lattice/quda#1641 between processes: a rank packs each face, stores it into its neighbour's memory (opened by CUDA
   IPC) and says so in the neighbour's memory by a stream write value; the neighbour's stream waits for the value, and what
   stands behind it in the stream uses the face. No acknowledgement: two buffers in turn bound how far a rank runs ahead.
   Every element of every face is checked, by a kernel that stands right behind the wait.

   usage: gated_halo [--ranks N] [--iterations N] [--dimensions N] [--words N] [--start COUNTER] [--width 32|64]
                     [--put copy|kernel] [--gate flag|event] [--rounds N] [--seconds N]

   Exit status 0: nothing lost, nothing early, nothing hung. */
#include "world.h"

enum { BUFFERS = 2, MOST_DIRECTIONS = 8, SLOTS = BUFFERS * MOST_DIRECTIONS };

static int iterations = 100, dimensions = 1, words = 4096, width = 64, rounds = 2, by_kernel, by_event;
static uint64_t start;

/* What a rank tells the others. */
struct card {
    CUipcMemHandle halo[BUFFERS], flags[BUFFERS];
    CUipcEventHandle event[BUFFERS][MOST_DIRECTIONS];
    /* Messages of the event mode: how many records the neighbour in that direction may count on. */
    uint64_t doorbell[BUFFERS][MOST_DIRECTIONS];
};

static struct card *card(int rank) { return (struct card *)world->board + rank; }

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* to[i] = value + i */
    ".visible .entry put(.param .u64 to, .param .u32 value, .param .u32 words) {\n"
    " .reg .u64 %a; .reg .u64 %b; .reg .u32 %i; .reg .u32 %n; .reg .u32 %t; .reg .u32 %v; .reg .pred %p;\n"
    " ld.param.u64 %a, [to]; ld.param.u32 %v, [value]; ld.param.u32 %n, [words];\n"
    " mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;\n"
    " setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
    " mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; add.u32 %v, %v, %i; st.global.u32 [%a], %v;\n"
    "DONE: ret; }\n"
    /* *wrong += 1 for every i where from[i] != value + i */
    ".visible .entry check(.param .u64 from, .param .u32 value, .param .u32 words, .param .u64 wrong) {\n"
    " .reg .u64 %a; .reg .u64 %b; .reg .u64 %w; .reg .u32 %i; .reg .u32 %n; .reg .u32 %t; .reg .u32 %v; .reg .pred %p;\n"
    " ld.param.u64 %a, [from]; ld.param.u32 %v, [value]; ld.param.u32 %n, [words]; ld.param.u64 %w, [wrong];\n"
    " mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;\n"
    " setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
    " mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; add.u32 %v, %v, %i; ld.global.u32 %t, [%a];\n"
    " setp.eq.u32 %p, %t, %v; @%p bra DONE; atom.global.add.u32 %t, [%w], 1;\n"
    "DONE: ret; }\n";

static CUfunction put, check;

static void launch_put(CUdeviceptr to, uint32_t value, CUstream stream) {
    void *arguments[] = {&to, &value, &words};
    OK(cuLaunchKernel(put, (words + 255) / 256, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static void launch_check(CUdeviceptr from, uint32_t value, CUdeviceptr wrong, CUstream stream) {
    void *arguments[] = {&from, &value, &words, &wrong};
    OK(cuLaunchKernel(check, (words + 255) / 256, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

/* Direction 2d goes up in dimension d, 2d + 1 down; dimensions are rings of different strides through all ranks. */
static int neighbour(int direction) {
    int stride = 1 + direction / 2 % (ranks > 1 ? ranks - 1 : 1);
    return (me + (direction % 2 ? ranks - stride : stride)) % ranks;
}

static uint32_t pattern(int rank, int iteration, int direction) {
    return (uint32_t)iteration * 2654435761u + (uint32_t)rank * 7919u + (uint32_t)direction * 104729u;
}

static void write_flag(CUstream stream, CUdeviceptr flag, uint64_t value) {
    if (width == 64) OK(cuStreamWriteValue64(stream, flag, value, 0));
    else OK(cuStreamWriteValue32(stream, flag, (uint32_t)value, 0));
}

static void wait_flag(CUstream stream, CUdeviceptr flag, uint64_t value) {
    if (width == 64) OK(cuStreamWaitValue64(stream, flag, value, CU_STREAM_WAIT_VALUE_GEQ));
    else OK(cuStreamWaitValue32(stream, flag, (uint32_t)value, CU_STREAM_WAIT_VALUE_GEQ));
}

/* One life of buffers, flags and streams; `round` varies the data. */
static void exchange(int round) {
    int directions = 2 * dimensions;
    size_t face = (size_t)words * 4;
    CUdeviceptr halo[BUFFERS], flags[BUFFERS], source, wrong;
    CUdeviceptr far_halo[BUFFERS][MOST_DIRECTIONS], far_flags[BUFFERS][MOST_DIRECTIONS];
    CUstream send[MOST_DIRECTIONS], receive[BUFFERS][MOST_DIRECTIONS];
    CUevent event[BUFFERS][MOST_DIRECTIONS], far_event[BUFFERS][MOST_DIRECTIONS];
    uint64_t sent[SLOTS], received[SLOTS];
    struct card *mine = card(me);

    for (int b = 0; b < BUFFERS; b++) {
        OK(cuMemAlloc(&halo[b], face * directions));
        OK(cuMemAlloc(&flags[b], 4096));
        OK(cuMemsetD32(halo[b], 0xdeadbeef, face / 4 * directions));
        for (int slot = 0; slot < MOST_DIRECTIONS; slot++) {
            OK(cuMemcpyHtoD(flags[b] + 8 * slot, &start, 8));
            sent[b * MOST_DIRECTIONS + slot] = received[b * MOST_DIRECTIONS + slot] = start;
        }
        OK(cuIpcGetMemHandle(&mine->halo[b], halo[b]));
        OK(cuIpcGetMemHandle(&mine->flags[b], flags[b]));
        for (int d = 0; d < directions; d++) {
            OK(cuStreamCreate(&receive[b][d], CU_STREAM_NON_BLOCKING));
            if (!by_event) continue;
            OK(cuEventCreate(&event[b][d], CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
            OK(cuIpcGetEventHandle(&mine->event[b][d], event[b][d]));
            mine->doorbell[b][d] = 0;
        }
    }
    OK(cuMemAlloc(&source, face * directions));
    OK(cuMemAlloc(&wrong, 4));
    OK(cuMemsetD32(wrong, 0, 1));
    for (int d = 0; d < directions; d++) OK(cuStreamCreate(&send[d], CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize());
    barrier();
    for (int b = 0; b < BUFFERS; b++)
        for (int d = 0; d < directions; d++) {
            struct card *theirs = card(neighbour(d));
            /* Opened once for every direction: the second time counts, as QUDA's rings of two need. */
            OK(cuIpcOpenMemHandle(&far_halo[b][d], theirs->halo[b], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            OK(cuIpcOpenMemHandle(&far_flags[b][d], theirs->flags[b], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            /* The neighbour sends into my direction d what it calls d ^ 1. */
            if (by_event) OK(cuIpcOpenEventHandle(&far_event[b][d], theirs->event[b][d ^ 1]));
        }
    barrier();

    for (int i = 1; i <= iterations; i++) {
        int b = i % BUFFERS;
        /* The waits first: nothing that they wait for has been sent. */
        if (!by_event)
            for (int d = 0; d < directions; d++) {
                wait_flag(receive[b][d], flags[b] + 8 * d, ++received[b * MOST_DIRECTIONS + d]);
                launch_check(halo[b] + face * d, pattern(neighbour(d), round + i, d ^ 1), wrong, receive[b][d]);
            }
        for (int d = 0; d < directions; d++) {
            CUdeviceptr to = far_halo[b][d] + face * (d ^ 1);
            if (by_kernel) {
                launch_put(to, pattern(me, round + i, d), send[d]);
            } else {
                launch_put(source + face * d, pattern(me, round + i, d), send[d]);
                OK(cuMemcpyAsync(to, source + face * d, face, send[d]));
            }
            if (by_event) {
                OK(cuEventRecord(event[b][d], send[d]));
                __atomic_fetch_add(&card(neighbour(d))->doorbell[b][d ^ 1], 1, __ATOMIC_ACQ_REL);
            } else {
                write_flag(send[d], far_flags[b][d] + 8 * (d ^ 1), ++sent[b * MOST_DIRECTIONS + d]);
            }
        }
        if (by_event)
            for (int d = 0; d < directions; d++) {
                uint64_t wanted = ++received[b * MOST_DIRECTIONS + d] - start;
                while (__atomic_load_n(&mine->doorbell[b][d], __ATOMIC_ACQUIRE) < wanted) {
                    if (world->failed) _exit(1);
                    usleep(20);
                }
                if (d % 2) OK(cuEventSynchronize(far_event[b][d]));
                else OK(cuStreamWaitEvent(receive[b][d], far_event[b][d], 0));
                launch_check(halo[b] + face * d, pattern(neighbour(d), round + i, d ^ 1), wrong, receive[b][d]);
            }
        for (int d = 0; d < directions; d++) {
            OK(cuStreamSynchronize(receive[b][d]));
            OK(cuStreamSynchronize(send[d]));
        }
        if (i % 64 == 0 || i == iterations) {
            uint32_t count = 0;
            OK(cuMemcpyDtoH(&count, wrong, 4));
            if (count) DIE("%u words wrong or not there yet up to iteration %d", count, i);
        }
        progress("iteration", i, iterations);
    }
    OK(cuCtxSynchronize());
    for (int b = 0; !by_event && b < BUFFERS; b++)
        for (int d = 0; d < directions; d++) {
            uint64_t flag = 0;
            OK(cuMemcpyDtoH(&flag, flags[b] + 8 * d, width / 8));
            uint64_t wanted = width == 64 ? received[b * MOST_DIRECTIONS + d] : (uint32_t)received[b * MOST_DIRECTIONS + d];
            if (flag != wanted) DIE("flag %d of buffer %d is %#lx, not %#lx", d, b, flag, wanted);
        }
    barrier();
    for (int b = 0; b < BUFFERS; b++)
        for (int d = 0; d < directions; d++) {
            OK(cuIpcCloseMemHandle(far_halo[b][d]));
            OK(cuIpcCloseMemHandle(far_flags[b][d]));
            OK(cuStreamDestroy(receive[b][d]));
            if (!by_event) continue;
            OK(cuEventDestroy(far_event[b][d]));
            OK(cuEventDestroy(event[b][d]));
        }
    barrier();
    for (int d = 0; d < directions; d++) OK(cuStreamDestroy(send[d]));
    for (int b = 0; b < BUFFERS; b++) {
        OK(cuMemFree(halo[b]));
        OK(cuMemFree(flags[b]));
    }
    OK(cuMemFree(source));
    OK(cuMemFree(wrong));
}

static void body(void) {
    int memory_operations = 0, events = 0;
    CUmodule module;
    use_device();
    OK(cuDeviceGetAttribute(&memory_operations, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device));
    OK(cuDeviceGetAttribute(&events, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, device));
    if (!memory_operations || !events) DIE("the device says that it cannot");
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&put, module, "put"));
    OK(cuModuleGetFunction(&check, module, "check"));
    for (int round = 0; round < rounds; round++) exchange(round * 1000003);
}

int main(int argc, char **argv) {
    unsigned seconds = 120;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        if (!strcmp(option, "--ranks")) ranks = atoi(value);
        else if (!strcmp(option, "--iterations")) iterations = atoi(value);
        else if (!strcmp(option, "--dimensions")) dimensions = atoi(value);
        else if (!strcmp(option, "--words")) words = atoi(value);
        else if (!strcmp(option, "--start")) start = strtoull(value, NULL, 0);
        else if (!strcmp(option, "--width")) width = atoi(value);
        else if (!strcmp(option, "--put")) by_kernel = !strcmp(value, "kernel");
        else if (!strcmp(option, "--gate")) by_event = !strcmp(value, "event");
        else if (!strcmp(option, "--rounds")) rounds = atoi(value);
        else if (!strcmp(option, "--seconds")) seconds = (unsigned)atoi(value);
        else return fprintf(stderr, "what is %s?\n", option), 2;
    }
    if (dimensions < 1 || 2 * dimensions > MOST_DIRECTIONS || (width != 32 && width != 64) || ranks < 2) return 2;
    int failed = run_ranks(body, seconds);
    printf("%d ranks, %d directions, %d x %d iterations: %s\n", ranks, 2 * dimensions, rounds, iterations, failed ? "FAILED" : "no face lost, none early");
    return failed;
}
