/* Events of several processes: record, wait, query and synchronise in either, re-recording, many records, and the death of a process.

   Rank 0 exports, rank 1 opens. Exit status 0: every order was kept, nothing hung. */
#include "world.h"

#include <signal.h>

struct board {
    CUipcEventHandle event[80], doomed;
    CUipcMemHandle memory;
    pid_t exporter;
};

static struct board *shared(void) { return (struct board *)world->board; }

#define EXPECT(found, wanted)                                                                              \
    do {                                                                                                   \
        long found_ = (long)(found), wanted_ = (long)(wanted);                                             \
        if (found_ != wanted_) DIE("%s is %ld, not %ld", #found, found_, wanted_);                         \
    } while (0)

static uint32_t word(CUdeviceptr address) {
    uint32_t value;
    OK(cuMemcpyDtoH(&value, address, 4));
    return value;
}

/* A process that opens events and is killed, or leaves, with one of them on its way. */
static void die_early(void) {
    CUdeviceptr never;
    CUstream stream;
    CUevent done, pending;
    use_device();
    OK(cuMemAlloc(&never, 4));
    OK(cuMemsetD32(never, 0, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    OK(cuEventCreate(&pending, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    OK(cuEventRecord(done, stream));
    OK(cuEventSynchronize(done));
    OK(cuIpcGetEventHandle(&shared()->event[0], done));
    OK(cuStreamWaitValue32(stream, never, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuEventRecord(pending, stream));
    OK(cuIpcGetEventHandle(&shared()->doomed, pending));
    barrier();
    barrier();
    raise(SIGKILL);
}

static void survive(void) {
    CUevent done, pending, after;
    CUstream behind, follower;
    CUdeviceptr mark;
    use_device();
    OK(cuMemAlloc(&mark, 12));
    OK(cuMemsetD32(mark, 0, 3));
    OK(cuStreamCreate(&behind, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&follower, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
    barrier();
    OK(cuIpcOpenEventHandle(&done, shared()->event[0]));
    OK(cuIpcOpenEventHandle(&pending, shared()->doomed));
    OK(cuEventQuery(done));
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(pending));
    OK(cuStreamWaitEvent(behind, pending, 0));
    OK(cuMemsetD32Async(mark, 1, 1, behind));
    OK(cuEventRecord(after, behind));
    OK(cuStreamWaitEvent(follower, after, 0));
    OK(cuMemsetD32Async(mark + 4, 1, 1, follower));
    barrier();
    while (kill(shared()->exporter, 0) == 0 && !world->board[sizeof world->board - 1]) usleep(1000);
    /* What was passed stays passed; what was on its way never ends, and waiting for it says so. */
    OK(cuEventQuery(done));
    OK(cuEventSynchronize(done));
    CUresult waited = cuEventSynchronize(pending);
    if (waited == CUDA_SUCCESS) DIE("an event of a dead process is said to have been passed");
    /* The process itself is well, but for what stands behind the lost record (all as recorded: oracle/life.cc). */
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD32Async(mark + 8, 7, 1, stream));
    OK(cuStreamSynchronize(stream));
    usleep(2500000);
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(behind));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(follower));
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    uint32_t marks[3];
    OK(cuMemcpyDtoHAsync(marks, mark, 12, stream));
    EXPECT(marks[0], 0);
    EXPECT(marks[1], 0);
    EXPECT(marks[2], 7);
    OK(cuStreamWaitEvent(stream, done, 0));
    OK(cuEventRecord(done, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuEventSynchronize(done));
    OK(cuEventDestroy(done));
    OK(cuEventDestroy(pending));
}

static void death(void) {
    if (me == 0) {
        shared()->exporter = getpid();
        die_early();
    } else {
        survive();
    }
}

static void body(void) {
    enum { EVENTS = 80, RECORDS = 300 };
    CUevent event[EVENTS];
    CUdeviceptr memory, flag;
    CUstream stream, other;
    use_device();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&flag, 4));
    OK(cuMemsetD32(flag, 0, 1));
    if (me == 0) {
        OK(cuMemAlloc(&memory, 4096));
        OK(cuMemsetD32(memory, 0, 1024));
        OK(cuCtxSynchronize());
        OK(cuIpcGetMemHandle(&shared()->memory, memory));
        for (int i = 0; i < EVENTS; i++) {
            CUevent opened;
            OK(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
            OK(cuIpcGetEventHandle(&shared()->event[i], event[i]));
            GIVES(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, shared()->event[i]));
        }
    }
    barrier();
    if (me == 1) {
        CUipcEventHandle torn = shared()->event[0];
        torn.reserved[3] ^= 1;
        GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenEventHandle(&event[0], torn));
        OK(cuIpcOpenMemHandle(&memory, shared()->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        for (int i = 0; i < EVENTS; i++) {
            OK(cuIpcOpenEventHandle(&event[i], shared()->event[i]));
            OK(cuEventQuery(event[i])); /* never recorded */
        }
    }
    barrier();
    /* Each rank in turn holds a stream, records behind it, and lets the other see that it waits. */
    for (int turn = 0; turn < 4; turn++) {
        int recorder = turn % 2;
        if (me == recorder) {
            OK(cuStreamWaitValue32(stream, flag, (uint32_t)turn + 1, CU_STREAM_WAIT_VALUE_EQ));
            OK(cuMemsetD32Async(memory, (uint32_t)turn + 100, 1, stream));
            OK(cuEventRecord(event[turn], stream));
        }
        barrier();
        GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event[turn]));
        if (me != recorder) {
            /* Queued behind the other process's record. */
            OK(cuStreamWaitEvent(other, event[turn], 0));
            OK(cuMemcpyDtoDAsync(flag, memory, 4, other));
            GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
        }
        barrier();
        if (me == recorder) OK(cuStreamWriteValue32(other, flag, (uint32_t)turn + 1, 0));
        else OK(cuStreamSynchronize(other));
        OK(cuEventSynchronize(event[turn]));
        OK(cuEventQuery(event[turn]));
        if (me != recorder) EXPECT(word(flag), turn + 100);
        barrier();
        OK(cuMemsetD32(flag, 0, 1));
        OK(cuCtxSynchronize());
        barrier();
    }
    /* More records than the event has words for, passed in order; a wait means the last record at the time of the call. */
    if (me == 0) {
        for (uint32_t i = 1; i <= RECORDS; i++) {
            OK(cuMemsetD32Async(memory + 4, i, 1, stream));
            OK(cuEventRecord(event[10], stream));
        }
    }
    barrier();
    if (me == 1) {
        OK(cuEventSynchronize(event[10]));
        EXPECT(word(memory + 4), RECORDS);
    }
    /* Records that end in another order than they were made: the wait is for the last, not for whichever ends first. */
    if (me == 0) {
        OK(cuMemsetD32(flag, 0, 1));
        OK(cuEventRecord(event[11], other)); /* ends at once */
        OK(cuStreamWaitValue32(stream, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuMemsetD32Async(memory + 8, 42, 1, stream));
        OK(cuEventRecord(event[11], stream)); /* held */
        OK(cuStreamSynchronize(other));
    }
    barrier();
    if (me == 1) GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event[11]));
    barrier();
    if (me == 0) OK(cuStreamWriteValue32(other, flag, 7, 0));
    if (me == 1) {
        OK(cuEventSynchronize(event[11]));
        EXPECT(word(memory + 8), 42);
    }
    barrier();
    /* Destroyed in any order; a handle of a destroyed event opens nothing once all are gone. */
    if (me == 0) for (int i = 0; i < EVENTS / 2; i++) OK(cuEventDestroy(event[i]));
    barrier();
    if (me == 1) for (int i = 0; i < EVENTS; i++) OK(cuEventDestroy(event[i]));
    barrier();
    if (me == 0) for (int i = EVENTS / 2; i < EVENTS; i++) OK(cuEventDestroy(event[i]));
    barrier();
    if (me == 1) {
        CUevent late;
        GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenEventHandle(&late, shared()->event[3]));
        OK(cuIpcCloseMemHandle(memory));
    }
    barrier();
    if (me == 0) OK(cuMemFree(memory));
}

/* Of the two ranks of `death`, one is killed on purpose. */
static int run_death(void) {
    int status;
    pid_t children[2];
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world == MAP_FAILED) return 1;
    for (int rank = 0; rank < 2; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) {
            me = rank;
            alarm(60);
            death();
            fflush(NULL);
            exit(0);
        }
    }
    if (waitpid(children[0], &status, 0) != children[0] || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fprintf(stderr, "the exporter ended with %#x\n", status);
        __atomic_store_n(&world->failed, 1, __ATOMIC_RELEASE);
    }
    world->board[sizeof world->board - 1] = 1;
    if (waitpid(children[1], &status, 0) != children[1] || status) return fprintf(stderr, "the survivor ended with %#x\n", status), 1;
    return world->failed;
}

int main(void) {
    if (run_ranks(body, 60)) return 1;
    puts("records and waits of two processes keep their order");
    fflush(NULL);
    if (run_death()) return 1;
    puts("a dead exporter hangs nobody");
    return 0;
}
