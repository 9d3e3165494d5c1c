// Faults (argv[1]: kernels.cl built for the machine's GPU): each must reach the runtime with its address, stop its queue
// only, and leave the process alive.
#include "code.h"

static struct machine m;

struct seen {
    uint64_t address;
    int events;
};

static hsa_status_t on_event(const hsa_amd_event_t *event, void *data)
{
    struct seen *seen = data;
    if (event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) seen->address = event->memory_fault.virtual_address;
    __atomic_add_fetch(&seen->events, 1, __ATOMIC_RELEASE);
    return HSA_STATUS_SUCCESS;
}

static void expect_fault(struct seen *seen, int count, uint64_t address)
{
    for (int i = 0; i < 2000 && __atomic_load_n(&seen->events, __ATOMIC_ACQUIRE) < count; i++) usleep(1000);
    EXPECT(seen->events == count, "%d faults to be reported, there are %d", count, seen->events);
    EXPECT(seen->address == (address & ~0xfffull), "a fault at %#lx, it is at %#lx", address, seen->address);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2, "the path of a code object");
    m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    struct seen seen = {0};
    CHECK(hsa_amd_register_system_event_handler(on_event, &seen));
    struct code code = code_load(argv[1], gpu);
    struct { unsigned *where; unsigned value; } poke;

    // Host memory that this GPU was given no access to, and nothing at all.
    unsigned *hidden;
    CHECK(hsa_amd_memory_pool_allocate(m.host, 1 << 20, 0, (void **)&hidden));
    unsigned *places[] = {hidden + 1000, (unsigned *)0x123456789000, NULL};
    for (int i = 0; i < 3; i++) {
        hsa_queue_t *queue;
        CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
        poke.where = places[i], poke.value = 7;
        hsa_signal_t done = signal_new(1);
        dispatch(&m, queue, code_kernel(&code, "poke.kd"), 1, 1, 0, &poke, sizeof poke, done);
        expect_fault(&seen, i + 1, (uint64_t)places[i]);
        EXPECT(hsa_signal_load_scacquire(done) == 1, "the dispatch not to complete");
        CHECK(hsa_queue_destroy(queue));
    }

    // Another queue works on.
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    unsigned *host = host_alloc(&m, 4096);
    poke.where = host, poke.value = 42;
    hsa_signal_t done = signal_new(1);
    dispatch(&m, queue, code_kernel(&code, "poke.kd"), 1, 1, 0, &poke, sizeof poke, done);
    wait_for(done, "a kernel after faults");
    EXPECT(*host == 42, "its store");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_shut_down());
    printf("faults: ok\n");
    return 0;
}
