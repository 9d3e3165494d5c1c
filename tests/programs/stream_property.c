/* Random programs over streams, checked against a sequential model.

   A program is a sequence of operations on words ("cells") of device and pinned memory: kernels, copies, fills, stream writes and host functions. The
   model runs the sequence one after the other. The device runs it over many streams, issued by many threads: an operation is ordered
   only behind those that it depends on (it reads what they wrote, or writes what they read or wrote), by the order of its
   stream, by an event, or by a stream wait for a word that the other stream writes, which may be issued long before the write.

   usage: stream_property [--seconds N] [--seed N] [--streams N] [--threads N] [--operations N]

   Exit status 0: all programs agreed with the model. A failure names its seed. */
#include "world.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

enum { MOST_STREAMS = 256, MOST_OPERATIONS = 4096, CELLS = 64, PINNED = 16, MOST_DEVICES = 2, MOST_EDGES = 24 };

enum kind { KERNEL, COPY, FILL, WRITE, HOST, KINDS };

struct edge {
    int before; /* the operation that must end first */
    int by_word; /* through memory, else by an event */
};

struct operation {
    enum kind kind;
    int stream, thread, to, a, b;
    uint32_t constant;
    int edges;
    struct edge edge[MOST_EDGES];
    int signals; /* it writes its word when it has ended */
    int records; /* it records its event */
    int previous; /* the operation before it in its stream, or -1 */
    CUevent event;
    int issued;
};

static int streams = 64, threads = 8, operations = 400;
static struct operation *program;
static uint64_t seed;

static uint64_t random_state;
static uint32_t dice(uint32_t sides) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % sides;
}

static struct {
    CUdevice device;
    CUcontext context;
    CUfunction mix;
    CUdeviceptr cells, words;
} gpu[MOST_DEVICES];
static int gpus;
static CUstream stream[MOST_STREAMS];
static uint32_t *pinned;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* *to = *a * 31 + *b * 17 + constant */
    ".visible .entry mix(.param .u64 to, .param .u64 a, .param .u64 b, .param .u32 constant) {\n"
    " .reg .u64 %t; .reg .u64 %a; .reg .u64 %b; .reg .u32 %x; .reg .u32 %y; .reg .u32 %c;\n"
    " ld.param.u64 %t, [to]; ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u32 %c, [constant];\n"
    " ld.u32 %x, [%a]; ld.u32 %y, [%b]; mul.lo.u32 %x, %x, 31; mad.lo.u32 %x, %y, 17, %x; add.u32 %x, %x, %c; st.u32 [%t], %x; ret; }\n";

/* The last PINNED cells are pinned host memory; the others lie on the devices in turn. */
static int is_pinned(int cell) { return cell >= CELLS - PINNED; }

static CUdeviceptr address(int cell) {
    if (is_pinned(cell)) return (CUdeviceptr)&pinned[cell];
    return gpu[cell % gpus].cells + 4 * cell;
}

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t constant) { return a * 31 + b * 17 + constant; }

/* What the operation does, in the model and (for HOST) for real. */
static uint32_t result(const struct operation *op, uint32_t a, uint32_t b) {
    switch (op->kind) {
    case COPY: return a;
    case FILL:
    case WRITE: return op->constant;
    default: return mixed(a, b, op->constant);
    }
}

static void CUDA_CB call(void *data) {
    const struct operation *op = data;
    pinned[op->to] = result(op, pinned[op->a], pinned[op->b]);
}

static int ordered_by_stream(int earlier, int later) { return program[earlier].stream == program[later].stream; }

static void depend(int later, int earlier) {
    struct operation *op = &program[later];
    if (earlier < 0 || ordered_by_stream(earlier, later)) return;
    for (int i = 0; i < op->edges; i++)
        if (op->edge[i].before == earlier) return;
    if (op->edges == MOST_EDGES) DIE("too many dependencies");
    int by_word = (int)dice(2);
    op->edge[op->edges++] = (struct edge){earlier, by_word};
    if (by_word) program[earlier].signals = 1;
    else program[earlier].records = 1;
}

static void make_program(uint32_t *model) {
    static int writer[CELLS], readers[CELLS][MOST_EDGES], reader_count[CELLS], last[MOST_STREAMS];
    for (int i = 0; i < CELLS; i++) writer[i] = -1, reader_count[i] = 0, model[i] = (uint32_t)i * 1000;
    for (int i = 0; i < streams; i++) last[i] = -1;
    memset(program, 0, sizeof *program * (size_t)operations);
    for (int i = 0; i < operations; i++) {
        struct operation *op = &program[i];
        op->kind = dice(KINDS);
        op->stream = (int)dice((uint32_t)streams);
        op->thread = (int)dice((uint32_t)threads);
        op->constant = dice(1 << 30);
        int low = op->kind == HOST ? CELLS - PINNED : 0;
        do {
            op->to = low + (int)dice((uint32_t)(CELLS - low));
            op->a = low + (int)dice((uint32_t)(CELLS - low));
            op->b = low + (int)dice((uint32_t)(CELLS - low));
            /* Read by as many as fit the list of dependencies, and no host-to-host copies: those block the caller. */
        } while (reader_count[op->a] > 6 || reader_count[op->b] > 6 || (op->kind == COPY && is_pinned(op->a) && is_pinned(op->to)));
        op->previous = last[op->stream];
        last[op->stream] = i;
        int reads = op->kind == KERNEL || op->kind == HOST ? 2 : op->kind == COPY;
        if (reads > 0) depend(i, writer[op->a]);
        if (reads > 1) depend(i, writer[op->b]);
        depend(i, writer[op->to]);
        for (int r = 0; r < reader_count[op->to]; r++) depend(i, readers[op->to][r]);
        if (reads > 0) readers[op->a][reader_count[op->a]++] = i;
        if (reads > 1 && op->b != op->a) readers[op->b][reader_count[op->b]++] = i;
        writer[op->to] = i;
        reader_count[op->to] = 0;
        model[op->to] = result(op, model[op->a], model[op->b]);
    }
}

static void wait_until_issued(int op) {
    while (!__atomic_load_n(&program[op].issued, __ATOMIC_ACQUIRE)) sched_yield();
}

/* The word that operation `i` writes when it has ended, on the device of its stream or on another. */
static CUdeviceptr word(int i) { return gpu[i % gpus].words + 8 * i; }

static void issue(int i) {
    struct operation *op = &program[i];
    CUstream s = stream[op->stream];
    int d = op->stream % gpus;
    OK(cuCtxSetCurrent(gpu[d].context));
    if (op->previous >= 0) wait_until_issued(op->previous);
    for (int e = 0; e < op->edges; e++) {
        int before = op->edge[e].before;
        if (op->edge[e].by_word) {
            OK(cuStreamWaitValue64(s, word(before), (uint64_t)before + 1, CU_STREAM_WAIT_VALUE_EQ));
        } else {
            wait_until_issued(before);
            OK(cuStreamWaitEvent(s, program[before].event, 0));
        }
    }
    CUdeviceptr to = address(op->to), a = address(op->a), b = address(op->b);
    void *arguments[] = {&to, &a, &b, &op->constant};
    switch (op->kind) {
    case KERNEL: OK(cuLaunchKernel(gpu[d].mix, 1, 1, 1, 1, 1, 1, 0, s, arguments, NULL)); break;
    case COPY: OK(cuMemcpyAsync(to, a, 4, s)); break;
    case FILL: OK(cuMemsetD32Async(to, op->constant, 1, s)); break;
    case WRITE: OK(cuStreamWriteValue32(s, to, op->constant, 0)); break;
    default: OK(cuLaunchHostFunc(s, call, op)); break;
    }
    if (op->signals) OK(cuStreamWriteValue64(s, word(i), (uint64_t)i + 1, 0));
    if (op->records) {
        OK(cuEventCreate(&op->event, i % 3 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
        OK(cuEventRecord(op->event, s));
    }
    __atomic_store_n(&op->issued, 1, __ATOMIC_RELEASE);
}

static void *run_thread(void *number) {
    for (int i = 0; i < operations; i++)
        if (program[i].thread == (int)(intptr_t)number) issue(i);
    return NULL;
}

static void hung(int signal) {
    (void)signal;
    static char text[64];
    int length = snprintf(text, sizeof text, "seed %lu hangs\n", (unsigned long)seed);
    if (write(2, text, (size_t)length) < 0) _exit(4);
    _exit(3);
}

static void run_program(void) {
    static uint32_t model[CELLS], found[CELLS];
    pthread_t thread[64];
    random_state = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    make_program(model);
    for (int d = 0; d < gpus; d++) {
        OK(cuCtxSetCurrent(gpu[d].context));
        for (int i = 0; i < CELLS; i++) found[i] = (uint32_t)i * 1000;
        OK(cuMemcpyHtoD(gpu[d].cells, found, sizeof found));
        OK(cuMemsetD8(gpu[d].words, 0, 8 * (size_t)operations));
        OK(cuCtxSynchronize());
    }
    memcpy(pinned, found, sizeof found);
    for (int i = 0; i < streams; i++) {
        OK(cuCtxSetCurrent(gpu[i % gpus].context));
        OK(cuStreamCreateWithPriority(&stream[i], i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, -(i % 3)));
    }
    alarm(120);
    for (intptr_t t = 0; t < threads; t++)
        if (pthread_create(&thread[t], NULL, run_thread, (void *)t)) DIE("no thread");
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    for (int d = 0; d < gpus; d++) {
        OK(cuCtxSetCurrent(gpu[d].context));
        OK(cuCtxSynchronize());
    }
    for (int d = 0; d < gpus; d++) {
        uint32_t cells[CELLS];
        OK(cuCtxSetCurrent(gpu[d].context));
        OK(cuMemcpyDtoH(cells, gpu[d].cells, sizeof cells));
        for (int i = d; i < CELLS - PINNED; i += gpus) found[i] = cells[i];
    }
    memcpy(found + CELLS - PINNED, pinned + CELLS - PINNED, sizeof(uint32_t) * PINNED);
    alarm(0);
    for (int i = 0; i < CELLS; i++)
        if (found[i] != model[i]) DIE("seed %lu: cell %d is %u, the model says %u", (unsigned long)seed, i, found[i], model[i]);
    for (int i = 0; i < streams; i++) OK(cuStreamDestroy(stream[i]));
    for (int i = 0; i < operations; i++)
        if (program[i].records) OK(cuEventDestroy(program[i].event));
}

static unsigned seconds = 5;

static void body(void) {
    struct timespec begin, now;
    unsigned long programs = 0;
    alarm(0);
    signal(SIGALRM, hung);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    gpus = devices < MOST_DEVICES ? devices : MOST_DEVICES;
    program = calloc(MOST_OPERATIONS, sizeof *program);
    for (int d = 0; d < gpus; d++) {
        CUmodule module;
        OK(cuDeviceGet(&gpu[d].device, d));
        OK(cuDevicePrimaryCtxRetain(&gpu[d].context, gpu[d].device));
        OK(cuCtxSetCurrent(gpu[d].context));
        OK(cuModuleLoadData(&module, ptx));
        OK(cuModuleGetFunction(&gpu[d].mix, module, "mix"));
        OK(cuMemAlloc(&gpu[d].cells, 4 * CELLS));
        OK(cuMemAlloc(&gpu[d].words, 8 * MOST_OPERATIONS));
    }
    for (int d = 0; d < gpus; d++)
        for (int other = 0; other < gpus; other++) {
            OK(cuCtxSetCurrent(gpu[d].context));
            if (other != d) OK(cuCtxEnablePeerAccess(gpu[other].context, 0));
        }
    OK(cuMemHostAlloc((void **)&pinned, 4 * CELLS, CU_MEMHOSTALLOC_PORTABLE));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        run_program();
        programs++;
        seed++;
        progress("program", (long)programs, 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < (long)seconds);
    printf("%lu programs of %d operations over %d streams, %d threads and %d devices agree with the model\n", programs, operations, streams,
           threads, gpus);
}

int main(int argc, char **argv) {
    seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        if (!strcmp(option, "--seconds")) seconds = (unsigned)atoi(value);
        else if (!strcmp(option, "--seed")) seed = strtoull(value, NULL, 0);
        else if (!strcmp(option, "--streams")) streams = atoi(value);
        else if (!strcmp(option, "--threads")) threads = atoi(value);
        else if (!strcmp(option, "--operations")) operations = atoi(value);
        else return fprintf(stderr, "what is %s?\n", option), 2;
    }
    if (streams < 1 || streams > MOST_STREAMS || threads < 1 || threads > 64 || operations < 1 || operations > MOST_OPERATIONS) return 2;
    ranks = 1;
    return run_ranks(body, 0);
}
