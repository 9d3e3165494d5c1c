/* Many streams of one process that wait for values in memory: none goes on early, none blocks another, all go on in the end.

   usage: waiting_streams [--streams N]     (default 2000; the process leaves with one stream that waits for ever) */
#include "world.h"

#include <time.h>

static int streams = 2000;
static CUfunction add, spin;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 value) {\n"
    " .reg .u64 %a; .reg .u32 %v; .reg .u32 %t;\n"
    " ld.param.u64 %a, [to]; ld.param.u32 %v, [value]; ld.global.u32 %t, [%a]; add.u32 %t, %t, %v; st.global.u32 [%a], %t; ret; }\n"
    /* until *flag >= value */
    ".visible .entry spin(.param .u64 flag, .param .u32 value) {\n"
    " .reg .u64 %a; .reg .u32 %v; .reg .u32 %t; .reg .pred %p;\n"
    " ld.param.u64 %a, [flag]; ld.param.u32 %v, [value];\n"
    "L: ld.volatile.global.u32 %t, [%a]; setp.lt.u32 %p, %t, %v; @%p bra L; ret; }\n";

static void launch_add(CUdeviceptr to, uint32_t value, CUstream stream) {
    void *arguments[] = {&to, &value};
    OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static CUdeviceptr zeroed(size_t bytes) {
    CUdeviceptr address;
    OK(cuMemAlloc(&address, bytes));
    OK(cuMemsetD8(address, 0, bytes));
    OK(cuCtxSynchronize());
    return address;
}

static uint32_t word(CUdeviceptr address) {
    uint32_t value;
    OK(cuMemcpyDtoH(&value, address, 4));
    return value;
}

#define EXPECT(found, wanted)                                                                              \
    do {                                                                                                   \
        long found_ = (long)(found), wanted_ = (long)(wanted);                                             \
        if (found_ != wanted_) DIE("%s is %ld, not %ld", #found, found_, wanted_);                         \
    } while (0)

/* Every stream has a flag of its own, in device, pinned or registered memory in turn; behind the wait a write, a kernel or a copy. */
static void each_for_itself(void) {
    CUstream *stream = calloc(streams, sizeof *stream), writer;
    uint32_t *pinned, *registered, *found = calloc(streams, 4);
    CUdeviceptr flags = zeroed(4 * streams), results = zeroed(4 * streams), ones = zeroed(4);
    OK(cuMemsetD32(ones, 1, 1));
    OK(cuMemAllocHost((void **)&pinned, 4 * streams));
    memset(pinned, 0, 4 * streams);
    registered = aligned_alloc(4096, (4 * streams + 4095) & ~4095);
    memset(registered, 0, 4 * streams);
    OK(cuMemHostRegister(registered, 4 * streams, 0));
    for (int i = 0; i < streams; i++) {
        OK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
        CUdeviceptr flag = i % 3 == 0 ? flags + 4 * i : (CUdeviceptr)(i % 3 == 1 ? &pinned[i] : &registered[i]);
        OK(cuStreamWaitValue32(stream[i], flag, 1, CU_STREAM_WAIT_VALUE_EQ));
        if (i % 4 == 0) OK(cuMemcpyAsync(results + 4 * i, ones, 4, stream[i]));
        else if (i % 4 == 1) launch_add(results + 4 * i, 1, stream[i]);
        else OK(cuStreamWriteValue32(stream[i], results + 4 * i, 1, 0));
    }
    pause_ms(20);
    OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    for (int part = 0; part < 2; part++) {
        OK(cuMemcpyDtoH(found, results, 4 * streams));
        for (int i = 0; i < streams; i++) {
            EXPECT(found[i], i % 2 < part);
            EXPECT(cuStreamQuery(stream[i]), i % 2 < part ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
        }
        for (int i = part; i < streams; i += 2) {
            if (i % 3 == 0) OK(cuStreamWriteValue32(writer, flags + 4 * i, 1, 0));
            else if (i % 3 == 1) __atomic_store_n(&pinned[i], 1, __ATOMIC_RELEASE);
            else OK(cuStreamWriteValue32(writer, (CUdeviceptr)&registered[i], 1, 0));
        }
        for (int i = part; i < streams; i += 2) OK(cuStreamSynchronize(stream[i]));
    }
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(found, results, 4 * streams));
    for (int i = 0; i < streams; i++) {
        EXPECT(found[i], 1);
        OK(cuStreamDestroy(stream[i]));
    }
    OK(cuStreamDestroy(writer));
    OK(cuMemHostUnregister(registered));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(flags));
    OK(cuMemFree(results));
    OK(cuMemFree(ones));
    free(registered), free(found), free(stream);
    printf("%d streams wait, each for itself\n", streams);
}

/* Stream k waits for what stream k - 1 writes; the first write comes last, from a stream made last. */
static void chain(void) {
    int links = streams / 4;
    CUstream *stream = calloc(links, sizeof *stream), first;
    CUdeviceptr flags = zeroed(8 * (links + 1));
    uint64_t *found = calloc(links + 1, 8);
    for (int i = 0; i < links; i++) {
        OK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitValue64(stream[i], flags + 8 * i, i + 1, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuStreamWriteValue64(stream[i], flags + 8 * (i + 1), i + 2, 0));
    }
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWriteValue64(first, flags, 1, 0));
    OK(cuStreamSynchronize(stream[links - 1]));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(found, flags, 8 * (links + 1)));
    for (int i = 0; i <= links; i++) EXPECT(found[i], i + 1);
    for (int i = 0; i < links; i++) OK(cuStreamDestroy(stream[i]));
    OK(cuStreamDestroy(first));
    OK(cuMemFree(flags));
    free(found), free(stream);
    printf("a chain of %d streams\n", links);
}

/* Copies of all kinds behind waits, on more streams than there are queues and engines, hold up nobody else's copies. */
static void copies(void) {
    enum { WAITING = 64, BYTES = 1 << 16 };
    CUstream stream[WAITING], other;
    CUdeviceptr flag = zeroed(8), from = zeroed(BYTES), to = zeroed(BYTES * WAITING);
    unsigned char *pinned, *check = malloc(BYTES);
    OK(cuMemAllocHost((void **)&pinned, BYTES * (WAITING + 1)));
    memset(pinned, 0, BYTES * (WAITING + 1));
    for (int i = 0; i < WAITING; i++) {
        OK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitValue64(stream[i], flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuMemcpyAsync(to + BYTES * i, from, BYTES, stream[i]));
        OK(cuMemcpyDtoHAsync(pinned + BYTES * i, to + BYTES * i, BYTES, stream[i]));
    }
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int turn = 1; turn <= 8; turn++) {
        memset(pinned + BYTES * WAITING, turn, BYTES);
        OK(cuMemcpyHtoDAsync(from, pinned + BYTES * WAITING, BYTES, other));
        OK(cuMemcpyDtoH(check, from, BYTES));
        OK(cuStreamSynchronize(other));
        OK(cuMemcpyDtoH(check, from, BYTES));
        for (int i = 0; i < BYTES; i++) EXPECT(check[i], turn);
    }
    for (int i = 0; i < WAITING; i++) EXPECT(pinned[BYTES * i], 0);
    OK(cuStreamWriteValue64(other, flag, 1, 0));
    for (int i = 0; i < WAITING; i++) OK(cuStreamSynchronize(stream[i]));
    for (int i = 0; i < BYTES * WAITING; i++) EXPECT(pinned[i], 8);
    for (int i = 0; i < WAITING; i++) OK(cuStreamDestroy(stream[i]));
    OK(cuStreamDestroy(other));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(flag));
    OK(cuMemFree(from));
    OK(cuMemFree(to));
    free(check);
    puts("copies behind waits hold nobody up");
}

/* Copies and writes behind a kernel that spins, in every direction, hold up nobody else's: among those is what the kernel spins on. */
static void behind_a_spinning_kernel(void) {
    enum { BYTES = 1 << 16, OTHERS = 4 };
    CUstream held, copier[OTHERS];
    CUevent event;
    CUdeviceptr flag = zeroed(4), from = zeroed(BYTES), to = zeroed(BYTES), far = zeroed(BYTES * OTHERS);
    unsigned char *up, *down, *found = malloc(BYTES);
    uint32_t *word_up;
    OK(cuMemAllocHost((void **)&up, BYTES));
    OK(cuMemAllocHost((void **)&down, BYTES * (1 + OTHERS)));
    OK(cuMemAllocHost((void **)&word_up, 4));
    OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < OTHERS; i++) OK(cuStreamCreate(&copier[i], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int way = 0; way < 3; way++) {
        uint32_t wanted = (uint32_t)way + 1;
        memset(up, 0x10 + way, BYTES);
        memset(down, 0, BYTES * (1 + OTHERS));
        void *arguments[] = {&flag, &wanted};
        OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, held, arguments, NULL));
        OK(cuMemcpyHtoDAsync(from, up, BYTES, held));
        OK(cuMemcpyDtoDAsync(to, from, BYTES, held));
        OK(cuMemcpyDtoHAsync(down, to, BYTES, held));
        OK(cuMemsetD8Async(from, 0xee, BYTES, held));
        OK(cuStreamWriteValue32(held, far, 0xdead0000 + wanted, 0));
        OK(cuEventRecord(event, held));
        for (int i = 0; i < OTHERS; i++) {
            CUdeviceptr mine = far + (CUdeviceptr)i * BYTES + 64;
            OK(cuMemsetD8Async(mine, (unsigned char)(0x40 + way + i), BYTES - 64, copier[i]));
            OK(cuMemcpyDtoDAsync(mine + 32, mine, 32, copier[i]));
            OK(cuMemcpyDtoHAsync(down + (i + 1) * BYTES, mine, BYTES - 64, copier[i]));
        }
        for (int i = 0; i < OTHERS; i++) OK(cuStreamSynchronize(copier[i]));
        for (int i = 0; i < OTHERS; i++)
            for (int at = 0; at < BYTES - 64; at++) EXPECT(down[(i + 1) * BYTES + at], 0x40 + way + i);
        GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
        GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event));
        EXPECT(down[0], 0);
        *word_up = wanted;
        if (way == 0) OK(cuStreamWriteValue32(copier[0], flag, wanted, 0));
        else if (way == 1) OK(cuMemcpyHtoDAsync(flag, word_up, 4, copier[1]));
        else OK(cuMemsetD32Async(flag, wanted, 1, copier[2]));
        OK(cuEventSynchronize(event));
        for (int at = 0; at < BYTES; at++) EXPECT(down[at], 0x10 + way);
        OK(cuMemcpyDtoH(found, from, BYTES));
        for (int at = 0; at < BYTES; at++) EXPECT(found[at], 0xee);
        EXPECT(word(far), (uint32_t)(0xdead0000 + wanted));
        OK(cuCtxSynchronize());
    }
    OK(cuStreamDestroy(held));
    for (int i = 0; i < OTHERS; i++) OK(cuStreamDestroy(copier[i]));
    OK(cuEventDestroy(event));
    OK(cuMemFreeHost(up));
    OK(cuMemFreeHost(down));
    OK(cuMemFreeHost(word_up));
    OK(cuMemFree(flag));
    OK(cuMemFree(from));
    OK(cuMemFree(to));
    OK(cuMemFree(far));
    free(found);
    puts("copies behind a kernel that spins hold nobody up");
}

static void CUDA_CB note(void *where) { __atomic_fetch_add((int *)where, 1, __ATOMIC_SEQ_CST); }

/* What depends on a stream that waits, by events, host functions and the default stream's rules, waits with it; nothing else does. */
static void dependents(void) {
    CUstream waiting, follower, blocking, bystander;
    CUevent event, timed;
    int called = 0;
    float ms = -1;
    CUdeviceptr flag = zeroed(4), sum = zeroed(4), mark = zeroed(4);
    OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&follower, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&bystander, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    OK(cuStreamWaitValue32(waiting, flag, 0x10, CU_STREAM_WAIT_VALUE_AND));
    launch_add(sum, 1, waiting);
    OK(cuLaunchHostFunc(waiting, note, &called));
    launch_add(sum, 10, waiting);
    OK(cuEventRecord(event, waiting));
    OK(cuStreamWaitEvent(follower, event, 0));
    launch_add(sum, 100, follower);
    OK(cuEventRecord(timed, follower));
    OK(cuStreamWaitEvent(blocking, timed, 0));
    launch_add(sum, 1000, blocking);
    launch_add(sum, 10000, NULL); /* the default stream waits for the blocking one */
    for (int i = 0; i < 100; i++) launch_add(mark, 1, bystander);
    OK(cuStreamSynchronize(bystander));
    uint32_t value;
    OK(cuMemcpyDtoHAsync(&value, mark, 4, bystander));
    EXPECT(value, 100);
    pause_ms(10);
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(timed));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    GIVES(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, timed, timed));
    EXPECT(__atomic_load_n(&called, __ATOMIC_SEQ_CST), 0);
    OK(cuMemcpyDtoHAsync(&value, sum, 4, bystander));
    EXPECT(value, 0);
    OK(cuStreamWriteValue32(bystander, flag, 0xff, 0));
    OK(cuStreamSynchronize(NULL));
    EXPECT(word(sum), 11111);
    EXPECT(called, 1);
    OK(cuEventElapsedTime(&ms, timed, timed));
    EXPECT(ms, 0);
    OK(cuStreamDestroy(waiting));
    OK(cuStreamDestroy(follower));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(bystander));
    OK(cuEventDestroy(event));
    OK(cuEventDestroy(timed));
    OK(cuMemFree(flag));
    OK(cuMemFree(sum));
    OK(cuMemFree(mark));
    puts("what depends on a waiting stream waits with it");
}

/* A word goes through many values; each wait sees its own, whatever the others do. */
static void sequence(void) {
    enum { STEPS = 200 };
    CUstream a, b;
    CUdeviceptr flag = zeroed(8), sum = zeroed(4);
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < STEPS; i++) {
        OK(cuStreamWaitValue64(a, flag, 2 * i + 1, CU_STREAM_WAIT_VALUE_EQ));
        launch_add(sum, 1, a);
        OK(cuStreamWriteValue64(a, flag, 2 * i + 2, 0));
    }
    for (int i = 0; i < STEPS; i++) {
        OK(cuStreamWriteValue64(b, flag, 2 * i + 1, 0));
        OK(cuStreamWaitValue64(b, flag, 2 * i + 2, CU_STREAM_WAIT_VALUE_EQ));
        launch_add(sum, 1000, b);
    }
    OK(cuCtxSynchronize());
    EXPECT(word(flag), 2 * STEPS);
    EXPECT(word(sum), 1001 * STEPS);
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(flag));
    OK(cuMemFree(sum));
    printf("two streams hand a word to and fro %d times\n", STEPS);
}

/* Streams that wait may be destroyed; their work goes on. */
static void destroyed(void) {
    CUdeviceptr flag = zeroed(4), sum = zeroed(4);
    CUstream stream, writer;
    for (int i = 0; i < 20; i++) {
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitValue32(stream, flag, i + 1, CU_STREAM_WAIT_VALUE_EQ));
        launch_add(sum, 1, stream);
        OK(cuStreamWriteValue32(stream, flag, i + 2, 0));
        OK(cuStreamDestroy(stream));
    }
    OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWriteValue32(writer, flag, 1, 0));
    OK(cuCtxSynchronize());
    EXPECT(word(sum), 20);
    OK(cuStreamDestroy(writer));
    OK(cuMemFree(flag));
    OK(cuMemFree(sum));
    puts("destroyed streams go on");
}

static void body(void) {
    CUmodule module;
    CUstream stream;
    use_device();
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&add, module, "add"));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    each_for_itself();
    chain();
    copies();
    behind_a_spinning_kernel();
    dependents();
    sequence();
    destroyed();
    CUdeviceptr flag = zeroed(4);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(stream, flag, 0, CU_STREAM_WAIT_VALUE_AND));
    launch_add(flag, 1, stream);
    puts("leaving with a stream that waits");
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--streams")) streams = atoi(argv[2]);
    ranks = 1;
    return run_ranks(body, 120);
}
