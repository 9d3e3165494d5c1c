// Compiled kernels (argv[1]: kernels.cl built for the machine's GPU): results, LDS and barriers, and queues that do not
// block one another.
#include "code.h"

enum { N = 10000 };

static struct machine m;

static hsa_queue_t *queue_new(void)
{
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(m.gpu[0].agent, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

// What scratch.kd leaves behind when each item sums 100 numbers.
static void sums_check(const unsigned *out, unsigned items)
{
    for (unsigned i = 0; i < items; i++) {
        unsigned sum = 0;
        for (unsigned j = 0; j < 100; j++) sum += i * 3 + j * 7 % 512;
        EXPECT(out[i] == sum, "item %u to sum up to %u, it has %u", i, sum, out[i]);
    }
}

// A queue that needs more and more private memory: the packet processor asks, and the runtime gives it scratch.
static void scratch(struct machine *m, const struct code *code)
{
    enum { ITEMS = 64 * 40 };
    hsa_agent_t gpu = m->gpu[0].agent;
    unsigned *out = host_alloc(m, ITEMS * 4);
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    hsa_executable_symbol_t symbol;
    uint32_t private_size = 0;
    CHECK(hsa_executable_get_symbol_by_name(code->executable, "scratch.kd", &code->agent, &symbol));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_size));
    EXPECT(private_size >= 2048, "an array in private memory, not %u bytes", private_size);
    // The packet may ask for more than the kernel uses.
    for (uint32_t size = private_size; size <= 4 * private_size; size *= 2) {
        struct { unsigned *out; unsigned n; } arguments = {out, 100};
        hsa_signal_t done = signal_new(1);
        memset(out, 0, ITEMS * 4);
        dispatch_private(m, queue, code_kernel(code, "scratch.kd"), ITEMS, 64, 0, size, &arguments, sizeof arguments, done);
        wait_for(done, "a kernel with scratch");
        sums_check(out, ITEMS);
        CHECK(hsa_signal_destroy(done));
    }
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_amd_memory_pool_free(out));
}

static hsa_signal_t awaited;

static bool wait_in_handler(hsa_signal_value_t value, void *data)
{
    (void)value, (void)data;
    wait_for(awaited, "a kernel, in a handler");
    return false;
}

// A queue asks for scratch while the runtime's thread that answers is busy: its handler waits for another queue's kernel. That one
// has to go on meanwhile, also where one thread runs all queues.
static void late_scratch(const struct code *code)
{
    enum { ITEMS = 64 };
    hsa_queue_t *spinning = queue_new(), *asking = queue_new();
    hsa_signal_t call = signal_new(1), done = signal_new(1);
    unsigned *flag = host_alloc(&m, 8), *out = host_alloc(&m, ITEMS * 4);
    flag[0] = flag[1] = 0;
    struct { unsigned *flag, *done; } spin = {flag, flag + 1};
    awaited = signal_new(1);
    dispatch(&m, spinning, code_kernel(code, "spin.kd"), 64, 64, 0, &spin, sizeof spin, awaited);
    CHECK(hsa_amd_signal_async_handler(call, HSA_SIGNAL_CONDITION_EQ, 0, wait_in_handler, NULL));
    hsa_signal_store_screlease(call, 0);
    usleep(20000);
    struct { unsigned *out; unsigned n; } sums = {out, 100};
    dispatch_private(&m, asking, code_kernel(code, "scratch.kd"), ITEMS, 64, 0, 1 << 14, &sums, sizeof sums, done);
    usleep(20000);
    EXPECT(hsa_signal_load_scacquire(done) == 1, "the second kernel to wait for its scratch");
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    wait_for(awaited, "a kernel beside a queue that waits for scratch");
    wait_for(done, "the kernel that waited for scratch");
    sums_check(out, ITEMS);
    CHECK(hsa_queue_destroy(asking));
    CHECK(hsa_queue_destroy(spinning));
    CHECK(hsa_signal_destroy(call));
    CHECK(hsa_signal_destroy(done));
    CHECK(hsa_signal_destroy(awaited));
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2, "the path of a code object");
    m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    struct code code = code_load(argv[1], gpu);
    hsa_queue_t *queue = queue_new(), *second = queue_new();
    hsa_signal_t done = signal_new(1);

    float *x = host_alloc(&m, N * 4), *y = host_alloc(&m, N * 4), *device = device_alloc(&m.gpu[0], N * 4);
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(3 * i);
    copy(device, gpu, y, m.cpu, N * 4);
    struct { float *y, *x; float a; unsigned n; } saxpy = {device, x, 0.5f, N - 1};
    dispatch(&m, queue, code_kernel(&code, "saxpy.kd"), (N + 255) / 256 * 256, 256, 0, &saxpy, sizeof saxpy, done);
    wait_for(done, "saxpy");
    copy(y, m.cpu, device, gpu, N * 4);
    for (int i = 0; i < N; i++) {
        float expected = i < N - 1 ? 0.5f * (float)i + (float)(3 * i) : (float)(3 * i);
        EXPECT(y[i] == expected, "y[%d] to be %g, it is %g", i, expected, y[i]);
    }
    hsa_amd_profiling_dispatch_time_t time = {0};
    CHECK(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    CHECK(hsa_amd_profiling_get_dispatch_time(gpu, done, &time));
    EXPECT(time.start > 0 && time.end >= time.start, "a dispatch time, not %lu..%lu", time.start, time.end);

    unsigned *total = host_alloc(&m, 4), *numbers = host_alloc(&m, N * 4), expected = 0;
    for (unsigned i = 0; i < N; i++) expected += numbers[i] = i * i + 1;
    *total = 0;
    struct { unsigned *total, *x; unsigned n; } sum = {total, numbers, N};
    hsa_signal_store_relaxed(done, 1);
    dispatch(&m, queue, code_kernel(&code, "sum.kd"), (N + 255) / 256 * 256, 256, 1024, &sum, sizeof sum, done);
    wait_for(done, "sum");
    EXPECT(*total == expected, "a sum of %u, it is %u", expected, *total);

    // A kernel that spins on one queue, and one that goes by on another.
    unsigned *flag = host_alloc(&m, 8);
    flag[0] = flag[1] = 0;
    struct { unsigned *flag, *done; } spin = {flag, flag + 1};
    hsa_signal_t spun = signal_new(1);
    dispatch(&m, queue, code_kernel(&code, "spin.kd"), 64, 64, 0, &spin, sizeof spin, spun);
    *total = 0;
    hsa_signal_store_relaxed(done, 1);
    dispatch(&m, second, code_kernel(&code, "sum.kd"), (N + 255) / 256 * 256, 256, 1024, &sum, sizeof sum, done);
    wait_for(done, "sum beside a spinning kernel");
    EXPECT(*total == expected, "a sum of %u, it is %u", expected, *total);
    EXPECT(hsa_signal_load_scacquire(spun) == 1, "the kernel to spin");
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    wait_for(spun, "the spinning kernel");
    EXPECT(flag[1] == 1, "its store to be seen");

    // Queues that are stopped, and destroyed, under a kernel that would never end.
    for (int stop = 0; stop < 2; stop++) {
        hsa_queue_t *third = queue_new();
        flag[0] = flag[1] = 0;
        dispatch(&m, third, code_kernel(&code, "spin.kd"), 64, 64, 0, &spin, sizeof spin, (hsa_signal_t){0});
        usleep(10000);
        if (stop) {
            CHECK(hsa_queue_inactivate(third));
            __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
            usleep(10000);
            EXPECT(flag[1] == 0, "the kernel to be preempted");
        }
        CHECK(hsa_queue_destroy(third));
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        usleep(10000);
        EXPECT(flag[1] == 0, "the kernel to be gone");
    }
    CHECK(hsa_queue_destroy(second));

    CHECK(hsa_queue_destroy(queue));
    scratch(&m, &code);
    late_scratch(&code);
    CHECK(hsa_executable_destroy(code.executable));
    CHECK(hsa_shut_down());
    printf("kernels: ok\n");
    return 0;
}
