// Copies between host and device, of all kinds: both directions, within the device, odd sizes and addresses, dependent
// ones, registered host memory, fills, rectangles.
#include "common.h"

enum { SIZE = 3 << 20 };

static struct machine m;

static void sizes(void)
{
    static const size_t sizes[] = {1, 2, 3, 4, 15, 63, 64, 65, 4095, 4096, 4097, 65535, 1 << 20, SIZE - 8};
    hsa_agent_t gpu = m.gpu[0].agent;
    char *from = host_alloc(&m, SIZE), *to = host_alloc(&m, SIZE);
    char *a = device_alloc(&m.gpu[0], SIZE), *b = device_alloc(&m.gpu[0], SIZE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int shift = 0; shift < 8; shift += 3) {
            size_t n = sizes[i];
            pattern_fill(from, n, (unsigned)(i + shift));
            memset(to, 0xee, SIZE);
            copy(a + shift, gpu, from, m.cpu, n);
            copy(b + 7 - shift, gpu, a + shift, gpu, n);
            copy(to + 1, m.cpu, b + 7 - shift, gpu, n);
            pattern_check(to + 1, n, (unsigned)(i + shift), "host, device, device, host");
            EXPECT((unsigned char)to[0] == 0xee && (unsigned char)to[n + 1] == 0xee, "a copy of %zu to keep to it", n);
        }
    }
    CHECK(hsa_amd_memory_pool_free(from));
    CHECK(hsa_amd_memory_pool_free(to));
    CHECK(hsa_amd_memory_pool_free(a));
    CHECK(hsa_amd_memory_pool_free(b));
}

static void dependencies(void)
{
    hsa_agent_t gpu = m.gpu[0].agent;
    char *from = host_alloc(&m, SIZE), *to = host_alloc(&m, SIZE), *a = device_alloc(&m.gpu[0], SIZE);
    pattern_fill(from, SIZE, 5);
    memset(to, 0, SIZE);
    hsa_signal_t gate = signal_new(1), first = signal_new(1), second = signal_new(1);
    CHECK(hsa_amd_memory_async_copy(a, gpu, from, m.cpu, SIZE, 1, &gate, first));
    CHECK(hsa_amd_memory_async_copy(to, m.cpu, a, gpu, SIZE, 1, &first, second));
    usleep(20000);
    EXPECT(hsa_signal_load_scacquire(first) == 1, "the copy to wait for its dependency");
    hsa_signal_store_screlease(gate, 0);
    wait_for(second, "the dependent copy");
    pattern_check(to, SIZE, 5, "dependent copies");
    CHECK(hsa_signal_destroy(gate));
    CHECK(hsa_signal_destroy(first));
    CHECK(hsa_signal_destroy(second));
    CHECK(hsa_amd_memory_pool_free(from));
    CHECK(hsa_amd_memory_pool_free(to));
    CHECK(hsa_amd_memory_pool_free(a));
}

static void registered(void)
{
    hsa_agent_t gpu = m.gpu[0].agent;
    char *from = malloc(SIZE), *to = calloc(1, SIZE), *a = device_alloc(&m.gpu[0], SIZE);
    void *from_device, *to_device;
    pattern_fill(from, SIZE, 9);
    CHECK(hsa_amd_memory_lock(from, SIZE, &gpu, 1, &from_device));
    CHECK(hsa_amd_memory_lock(to, SIZE, &gpu, 1, &to_device));
    copy(a, gpu, from_device, m.cpu, SIZE);
    copy(to_device, m.cpu, a, gpu, SIZE);
    pattern_check(to, SIZE, 9, "registered host memory");
    CHECK(hsa_amd_memory_unlock(from));
    CHECK(hsa_amd_memory_unlock(to));
    memset(to, 0, SIZE);
    CHECK(hsa_memory_copy(to, a, SIZE));
    pattern_check(to, SIZE, 9, "pageable host memory");
    free(from);
    free(to);
    CHECK(hsa_amd_memory_pool_free(a));
}

static void timed(void)
{
    char *from = host_alloc(&m, SIZE), *a = device_alloc(&m.gpu[0], SIZE);
    hsa_signal_t done = signal_new(1);
    hsa_amd_profiling_async_copy_time_t time = {0};
    uint64_t before, after;
    CHECK(hsa_amd_profiling_async_copy_enable(true));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
    CHECK(hsa_amd_memory_async_copy(a, m.gpu[0].agent, from, m.cpu, SIZE, 0, NULL, done));
    wait_for(done, "a timed copy");
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
    CHECK(hsa_amd_profiling_get_async_copy_time(done, &time));
    // Clocks are matched by interpolation: a little slack.
    EXPECT(time.start < time.end && time.start + 1000000 > before && time.end < after + 1000000,
           "the copy between %lu and %lu, not %lu to %lu", before, after, time.start, time.end);
    CHECK(hsa_amd_profiling_async_copy_enable(false));
    CHECK(hsa_signal_destroy(done));
    CHECK(hsa_amd_memory_pool_free(from));
    CHECK(hsa_amd_memory_pool_free(a));
}

static void fills(void)
{
    uint32_t *a = device_alloc(&m.gpu[0], SIZE), *to = host_alloc(&m, SIZE);
    CHECK(hsa_amd_memory_fill(a, 0x11223344, SIZE / 4));
    CHECK(hsa_amd_memory_fill(a + 100, 0x55667788, 33));
    CHECK(hsa_memory_copy(to, a, SIZE));
    for (size_t i = 0; i < SIZE / 4; i++) {
        uint32_t expected = i >= 100 && i < 133 ? 0x55667788 : 0x11223344;
        EXPECT(to[i] == expected, "word %zu to be %#x, it is %#x", i, expected, to[i]);
    }
    CHECK(hsa_amd_memory_pool_free(a));
    CHECK(hsa_amd_memory_pool_free(to));
}

static void rectangles(void)
{
    enum { PITCH = 256, ROWS = 64, SLICE = PITCH * ROWS, SLICES = 3 };
    unsigned char *host = host_alloc(&m, SLICE * SLICES), *back = host_alloc(&m, SLICE * SLICES);
    unsigned char *a = device_alloc(&m.gpu[0], SLICE * SLICES);
    hsa_pitched_ptr_t device = {a, PITCH, SLICE}, from = {host, PITCH, SLICE}, to = {back, PITCH, SLICE};
    hsa_dim3_t in = {16, 3, 0}, mid = {32, 5, 1}, out = {8, 1, 1}, range = {100, 20, 2};
    hsa_signal_t done = signal_new(1);
    pattern_fill(host, SLICE * SLICES, 3);
    memset(back, 0, SLICE * SLICES);
    hsa_status_t status =
        hsa_amd_memory_async_copy_rect(&device, &mid, &from, &in, &range, m.gpu[0].agent, hsaHostToDevice, 0, NULL, done);
    if (status != HSA_STATUS_SUCCESS) {
        // ROCr does rectangles by SDMA only.
        EXPECT(getenv("HSA_ENABLE_SDMA") && !atoi(getenv("HSA_ENABLE_SDMA")), "rectangle copies; status %#x", status);
        printf("rectangles: need SDMA\n");
        return;
    }
    wait_for(done, "a rectangle copy to the device");
    hsa_signal_store_relaxed(done, 1);
    CHECK(hsa_amd_memory_async_copy_rect(&to, &out, &device, &mid, &range, m.gpu[0].agent, hsaDeviceToHost, 0, NULL, done));
    wait_for(done, "a rectangle copy from the device");
    for (unsigned z = 0; z < SLICES; z++)
        for (unsigned y = 0; y < ROWS; y++)
            for (unsigned x = 0; x < PITCH; x++) {
                bool inside = x - out.x < range.x && y - out.y < range.y && z - out.z < range.z;
                unsigned source = (x - out.x + in.x) + (y - out.y + in.y) * PITCH + (z - out.z + in.z) * SLICE;
                unsigned char expected = inside ? host[source] : 0, is = back[x + y * PITCH + z * SLICE];
                EXPECT(is == expected, "(%u,%u,%u) to be %#x, it is %#x", x, y, z, expected, is);
            }
    CHECK(hsa_signal_destroy(done));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_amd_memory_pool_free(back));
    CHECK(hsa_amd_memory_pool_free(a));
}

int main(void)
{
    m = machine_start(1);
    sizes();
    dependencies();
    registered();
    timed();
    fills();
    rectangles();
    CHECK(hsa_shut_down());
    printf("copies: ok\n");
    return 0;
}
