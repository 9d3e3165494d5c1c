/* What a process sees when its GPU has met a fault: the recorded code from every call, from every waiter and in every callback, a clean
   end, and nothing in other processes.

   usage: faults CASE     (unmapped, freed, trap, assert, shared, misaligned, endless) */
#include "world.h"

#include <pthread.h>
#include <time.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".global .align 1 .b8 text[8] = {111,111,112,115,0,0,0,0};\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 fn, .param .b64 cs);\n"
    ".visible .entry store_word(.param .u64 to) { .reg .u64 %t; .reg .u32 %v; ld.param.u64 %t, [to]; mov.u32 %v, 7; st.global.u32 [%t], %v; ret; }\n"
    ".visible .entry load_word(.param .u64 from) { .reg .u64 %t; .reg .u32 %v; ld.param.u64 %t, [from]; ld.volatile.global.u32 %v, [%t];\n"
    " st.global.u32 [%t], %v; ret; }\n"
    ".visible .entry trap_here(.param .u64 unused) { trap; ret; }\n"
    ".visible .entry fail_assertion(.param .u64 unused)\n"
    "{ .reg .u64 %t; .reg .u64 %one; mov.u64 %t, text; cvta.global.u64 %t, %t; mov.u64 %one, 1;\n"
    "  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
    "    st.param.b64 [a], %t; st.param.b64 [b], %t; st.param.b32 [c], 7; st.param.b64 [d], %t; st.param.b64 [e], %one;\n"
    "    call.uni __assertfail, (a, b, c, d, e); } ret; }\n"
    ".visible .entry overflow_shared(.param .u64 past)\n"
    "{ .shared .align 4 .b8 s[64]; .reg .u64 %p; .reg .u32 %a; .reg .u32 %r; ld.param.u64 %p, [past]; cvt.u32.u64 %r, %p;\n"
    "  mov.u32 %a, s; add.u32 %a, %a, %r; st.shared.u32 [%a], %r; ret; }\n"
    ".visible .entry spin_on(.param .u64 flag)\n"
    "{ .reg .u64 %t; .reg .u32 %v; .reg .pred %p; ld.param.u64 %t, [flag];\n"
    "L: ld.volatile.global.u32 %v, [%t]; setp.eq.u32 %p, %v, 0; @%p bra L; ret; }\n";

static CUstream bad, waiting;
static CUevent behind;
static CUresult wanted, told = -1;
static int called;
static const char *which;

static void CUDA_CB not_called(void *unused) { (void)unused; called = 1; }
static void CUDA_CB tells(CUstream stream, CUresult status, void *unused) {
    (void)stream, (void)unused;
    __atomic_store_n(&told, status, __ATOMIC_RELEASE);
}

static void *wait_for_stream(void *result) {
    cuCtxSetCurrent(context);
    *(CUresult *)result = cuStreamSynchronize(waiting);
    return NULL;
}

static void *wait_for_event(void *result) {
    cuCtxSetCurrent(context);
    *(CUresult *)result = cuEventSynchronize(behind);
    return NULL;
}

static void *wait_for_context(void *result) {
    cuCtxSetCurrent(context);
    *(CUresult *)result = cuCtxSynchronize();
    return NULL;
}

static void body(void) {
    static const struct { const char *name, *kernel; CUresult wanted; } cases[] = {
        {"unmapped", "store_word", CUDA_ERROR_ILLEGAL_ADDRESS},
        {"freed", "load_word", CUDA_ERROR_ILLEGAL_ADDRESS},
        {"trap", "trap_here", CUDA_ERROR_LAUNCH_FAILED},
        {"assert", "fail_assertion", CUDA_ERROR_ASSERT},
        /* The card ignores stores past the LDS and does misaligned accesses; the virtual GPU may stop at the first. */
        {"shared", "overflow_shared", CUDA_SUCCESS},
        {"misaligned", "store_word", CUDA_SUCCESS},
        {"endless", "spin_on", CUDA_SUCCESS},
    };
    size_t number = 0;
    while (number < sizeof cases / sizeof *cases && strcmp(cases[number].name, which)) number++;
    if (number == sizeof cases / sizeof *cases) DIE("no case %s", which);
    wanted = cases[number].wanted;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr word, freed, never;
    pthread_t threads[3];
    CUresult results[3] = {-1, -1, -1};
    uint32_t value = 0;
    use_device();
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&kernel, module, cases[number].kernel));
    OK(cuMemAlloc(&word, 64));
    OK(cuMemAlloc(&never, 64));
    OK(cuMemsetD8(word, 0, 64));
    OK(cuMemsetD8(never, 0, 64));
    OK(cuStreamCreate(&bad, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxSynchronize());
    CUdeviceptr argument = !strcmp(which, "unmapped") ? 0x600dead000
                           : !strcmp(which, "shared") ? 0x40000
                           : !strcmp(which, "misaligned") ? word + 2
                                                          : word;
    void *arguments[] = {&argument};
    if (!strcmp(which, "freed")) {
        /* The code must be there before, or it may lie where the freed memory lay. */
        argument = word;
        OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, bad, arguments, NULL));
        OK(cuMemAlloc(&freed, 64 << 20));
        OK(cuMemFree(freed));
        argument = freed + 0xdead000 % (64 << 20);
    }
    if (!strcmp(which, "endless")) {
        OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, bad, arguments, NULL));
        OK(cuStreamWaitValue32(waiting, never, 1, CU_STREAM_WAIT_VALUE_EQ));
        struct timespec moment = {0, 50000000};
        nanosleep(&moment, NULL);
        GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(bad));
        puts("leaving while a kernel runs");
        return;
    }
    /* A stream that waits for memory, with work behind, and threads that wait for it. */
    OK(cuStreamWaitValue32(waiting, never, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuMemsetD8Async(word + 32, 1, 4, waiting));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, bad, arguments, NULL));
    CUresult recorded = cuEventRecord(behind, bad);
    if (recorded != CUDA_SUCCESS && recorded != wanted) DIE("record gives %d", recorded);
    /* These may already find the fault. */
    CUresult enqueued = cuLaunchHostFunc(bad, not_called, NULL);
    CUresult added = cuStreamAddCallback(bad, tells, NULL, 0);
    CUresult first = cuStreamSynchronize(bad);
    if (wanted == CUDA_SUCCESS) {
        if (first == CUDA_SUCCESS) {
            OK(cuStreamWriteValue32(bad, never, 1, 0));
            OK(cuCtxSynchronize());
            OK(cuMemcpyDtoH(&value, word + 2, 4));
            if (!strcmp(which, "misaligned") && value != 7) DIE("a misaligned store wrote %#x", value);
            printf("%s: passes\n", which);
            return;
        }
        wanted = first;
    }
    if (first != wanted) DIE("the stream gives %d, not %d", first, wanted);
    void *(*waits[3])(void *) = {wait_for_stream, wait_for_event, wait_for_context};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, waits[i], &results[i])) DIE("no thread");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    if (recorded == CUDA_SUCCESS && results[1] != wanted) DIE("the event gives %d", results[1]);
    if (results[0] != wanted || results[2] != wanted) DIE("waiters got %d and %d", results[0], results[2]);
    if (enqueued == CUDA_SUCCESS && called) DIE("a host function ran behind the fault");
    if (added == CUDA_SUCCESS) {
        for (int i = 0; i < 2000 && __atomic_load_n(&told, __ATOMIC_ACQUIRE) == (CUresult)-1; i++) usleep(1000);
        if (told != wanted) DIE("the callback was told %d", told);
    }
    CUstream stream;
    CUevent event;
    CUdeviceptr memory;
    GIVES(wanted, cuMemAlloc(&memory, 64));
    GIVES(wanted, cuMemFree(word));
    GIVES(wanted, cuMemcpyHtoD(word, &value, 4));
    GIVES(wanted, cuMemcpyDtoH(&value, word, 4));
    GIVES(wanted, cuMemsetD8(word, 0, 4));
    GIVES(wanted, cuStreamCreate(&stream, 0));
    GIVES(wanted, cuStreamQuery(bad));
    GIVES(wanted, cuStreamSynchronize(waiting));
    GIVES(wanted, cuStreamWaitEvent(waiting, behind, 0));
    GIVES(wanted, cuStreamWaitValue32(bad, never, 1, CU_STREAM_WAIT_VALUE_EQ));
    GIVES(wanted, cuStreamWriteValue32(bad, never, 1, 0));
    GIVES(wanted, cuEventCreate(&event, 0));
    GIVES(wanted, cuEventQuery(behind));
    GIVES(wanted, cuEventRecord(behind, bad));
    GIVES(wanted, cuEventSynchronize(behind));
    GIVES(wanted, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, bad, arguments, NULL));
    GIVES(wanted, cuLaunchHostFunc(bad, not_called, NULL));
    GIVES(wanted, cuCtxSynchronize());
    printf("%s: %d from every call and every waiter\n", which, wanted);
}

/* A process that is not concerned works beside it. */
static void neighbour(void) {
    uint32_t value = 0;
    CUdeviceptr word;
    use_device();
    OK(cuMemAlloc(&word, 4));
    for (uint32_t i = 0; i < 200; i++) {
        OK(cuMemsetD32(word, i, 1));
        OK(cuMemcpyDtoH(&value, word, 4));
        if (value != i) DIE("the neighbour reads %u, not %u", value, i);
    }
}

static void both(void) {
    if (me == 0) body();
    else neighbour();
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    which = argv[1];
    return run_ranks(both, 60);
}
