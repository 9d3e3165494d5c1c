// Many threads at once: allocations, copies and frees of random sizes, and queues that come and go (argv[1]: rounds).
#include "common.h"
#include <pthread.h>

enum { WORKERS = 5, MOST = 1 << 20 };

static struct machine m;
static int rounds = 50;

static void *worker(void *data)
{
    unsigned seed = (unsigned)(uintptr_t)data * 7919 + 1;
    const struct gpu *gpu = &m.gpu[(uintptr_t)data % (unsigned)m.gpus];
    char *from = host_alloc(&m, MOST), *to = host_alloc(&m, MOST);
    for (int i = 0; i < rounds; i++) {
        size_t size = 1 + (size_t)rand_r(&seed) % MOST;
        char *a = device_alloc(gpu, size), *b = device_alloc(gpu, size);
        pattern_fill(from, size, seed);
        copy(a, gpu->agent, from, m.cpu, size);
        copy(b, gpu->agent, a, gpu->agent, size);
        CHECK(hsa_amd_memory_pool_free(a));
        copy(to, m.cpu, b, gpu->agent, size);
        pattern_check(to, size, seed, "a buffer among others");
        CHECK(hsa_amd_memory_pool_free(b));
    }
    CHECK(hsa_amd_memory_pool_free(from));
    CHECK(hsa_amd_memory_pool_free(to));
    return NULL;
}

static void *queuer(void *data)
{
    (void)data;
    for (int i = 0; i < 2 * rounds; i++) {
        hsa_queue_t *queue;
        hsa_signal_t done = signal_new(1);
        CHECK(hsa_queue_create(m.gpu[0].agent, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
        hsa_barrier_and_packet_t packet = {.header = packet_header(HSA_PACKET_TYPE_BARRIER_AND), .completion_signal = done};
        submit(queue, &packet);
        if (i % 3) wait_for(done, "a barrier");
        CHECK(hsa_queue_destroy(queue));
        CHECK(hsa_signal_destroy(done));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS + 1];
    if (argc > 1) rounds = atoi(argv[1]);
    m = machine_start(1);
    for (uintptr_t i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, worker, (void *)i);
    pthread_create(&threads[WORKERS], NULL, queuer, NULL);
    for (int i = 0; i <= WORKERS; i++) pthread_join(threads[i], NULL);
    CHECK(hsa_shut_down());
    printf("stress: ok\n");
    return 0;
}
