// What a process costs that has queues open and nothing to do: a share of one processor, by the kernel's own accounts. Work
// afterwards is still found.
#include "common.h"
#include <sys/resource.h>

enum { QUEUES = 24, SECONDS = 3 };

static double used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void each(struct machine *m, hsa_queue_t **queue)
{
    for (int i = 0; i < QUEUES; i++) {
        hsa_signal_t done = signal_new(1);
        hsa_barrier_and_packet_t packet = {.header = packet_header(HSA_PACKET_TYPE_BARRIER_AND), .completion_signal = done};
        submit(queue[i], &packet);
        wait_for(done, "a packet");
        CHECK(hsa_signal_destroy(done));
    }
    for (int i = 0; i < m->gpus; i++) {
        char *memory = device_alloc(&m->gpu[i], 4096), *host = host_alloc(m, 4096);
        copy(memory, m->gpu[i].agent, host, m->cpu, 4096);
        copy(host, m->cpu, memory, m->gpu[i].agent, 4096);
        CHECK(hsa_amd_memory_pool_free(memory));
        CHECK(hsa_amd_memory_pool_free(host));
    }
}

int main(void)
{
    struct machine m = machine_start(1);
    hsa_queue_t *queue[QUEUES];
    for (int i = 0; i < QUEUES; i++)
        CHECK(hsa_queue_create(m.gpu[i % m.gpus].agent, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue[i]));
    each(&m, queue);
    usleep(1200000); // until everything has gone to sleep
    double before = used();
    sleep(SECONDS);
    double share = (used() - before) / SECONDS;
    printf("idle: %.2f %% of a processor\n", 100 * share);
    EXPECT(share < 0.02, "an idle process to cost next to nothing, not %.2f %%", 100 * share);
    each(&m, queue);
    for (int i = 0; i < QUEUES; i++) CHECK(hsa_queue_destroy(queue[i]));
    CHECK(hsa_shut_down());
    printf("idle: ok\n");
    return 0;
}
