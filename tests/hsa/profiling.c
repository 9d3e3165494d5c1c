// Times of kernels, barriers and copies: monotonic, in the order in which things happened, between the host's own looks at the
// clock, and consistent with the clock that kernels read (argv[1]: kernels.cl, compiled).
#include "code.h"

static struct machine m;

// The host's clock, in ticks of HSA_SYSTEM_INFO_TIMESTAMP.
static uint64_t now(void)
{
    uint64_t time;
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &time));
    return time;
}

static uint64_t host_ticks(hsa_agent_t gpu, uint64_t gpu_ticks)
{
    uint64_t time;
    CHECK(hsa_amd_profiling_convert_tick_to_system_domain(gpu, gpu_ticks, &time));
    return time;
}

// The runtime matches the two clocks by interpolation: half a millisecond of slack.
static uint64_t slack;

static void host_clock(void)
{
    uint64_t frequency, last = now();
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    EXPECT(frequency >= 1000000, "a clock of 1 MHz or more, not %lu", frequency);
    slack = frequency / 2000;
    for (int i = 0; i < 100000; i++) {
        uint64_t time = now();
        EXPECT(time >= last, "time not to go back");
        last = time;
    }
    uint64_t before = now();
    usleep(50000);
    double seconds = (double)(now() - before) / (double)frequency;
    EXPECT(seconds > 0.045 && seconds < 20, "50 ms to be about that, not %g s", seconds);
}

static void kernels(const struct code *code)
{
    enum { ROUNDS = 20 };
    hsa_agent_t gpu = m.gpu[0].agent;
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    CHECK(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    uint64_t *times = host_alloc(&m, 4096);
    hsa_signal_t done[ROUNDS];
    uint64_t before = now();
    for (int i = 0; i < ROUNDS; i++) {
        struct { uint64_t *first, *last; unsigned rounds; } clock = {times + 2 * i, times + 2 * i + 1, 50};
        done[i] = signal_new(1);
        dispatch(&m, queue, code_kernel(code, "clock.kd"), 1, 1, 0, &clock, sizeof clock, done[i]);
    }
    for (int i = 0; i < ROUNDS; i++) wait_for(done[i], "a timed kernel");
    uint64_t after = now(), last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        hsa_amd_profiling_dispatch_time_t time;
        CHECK(hsa_amd_profiling_get_dispatch_time(gpu, done[i], &time));
        uint64_t first = host_ticks(gpu, times[2 * i]), end = host_ticks(gpu, times[2 * i + 1]);
        EXPECT(time.start < time.end, "kernel %d to take time: %lu to %lu", i, time.start, time.end);
        EXPECT(time.start + slack >= last, "kernel %d to start after the one before it: %lu, %lu", i, time.start, last);
        EXPECT(time.start + slack >= before && time.end <= after + slack, "kernel %d between %lu and %lu, not %lu to %lu", i, before, after,
               time.start, time.end);
        EXPECT(first <= end && first + slack >= time.start && end <= time.end + slack, "kernel %d to see its own time: %lu to %lu in %lu to %lu", i,
               first, end, time.start, time.end);
        last = time.end;
        CHECK(hsa_signal_destroy(done[i]));
    }
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_amd_memory_pool_free(times));
}

// Copies that wait for one another are timed one after the other; sizes tell.
static void copies(void)
{
    enum { ROUNDS = 8, SIZE = 4 << 20 };
    hsa_agent_t gpu = m.gpu[0].agent;
    char *host = host_alloc(&m, SIZE), *memory = device_alloc(&m.gpu[0], SIZE);
    hsa_signal_t done[ROUNDS];
    CHECK(hsa_amd_profiling_async_copy_enable(true));
    uint64_t before = now();
    for (int i = 0; i < ROUNDS; i++) {
        done[i] = signal_new(1);
        const hsa_signal_t *before_it = i > 0 ? &done[i - 1] : NULL;
        if (i % 2) CHECK(hsa_amd_memory_async_copy(host, m.cpu, memory, gpu, SIZE, 1, before_it, done[i]));
        else CHECK(hsa_amd_memory_async_copy(memory, gpu, host, m.cpu, SIZE, i > 0, before_it, done[i]));
    }
    for (int i = 0; i < ROUNDS; i++) wait_for(done[i], "a timed copy");
    uint64_t after = now(), last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        hsa_amd_profiling_async_copy_time_t time;
        CHECK(hsa_amd_profiling_get_async_copy_time(done[i], &time));
        EXPECT(time.start < time.end, "copy %d to take time: %lu to %lu", i, time.start, time.end);
        EXPECT(time.start + slack >= last, "copy %d to start after the one before it", i);
        EXPECT(time.start + slack >= before && time.end <= after + slack, "copy %d between the host's times", i);
        last = time.end;
        CHECK(hsa_signal_destroy(done[i]));
    }
    CHECK(hsa_amd_profiling_async_copy_enable(false));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_amd_memory_pool_free(memory));
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    m = machine_start(1);
    struct code code = code_load(argv[1], m.gpu[0].agent);
    host_clock();
    kernels(&code);
    copies();
    CHECK(hsa_shut_down());
    printf("profiling: ok\n");
    return 0;
}
