// Coarse-grained memory and fences (argv[1]: kernels.cl built for the machine's GPU). With argv[2] `hostile` the machine
// is one on which whatever may be stale is (VGPU_COHERENCE=hostile), and each missing fence must be found out; else only what
// the fences promise is checked, which holds on any machine.
#include "code.h"

enum { N = 64 };

static struct machine m;
static hsa_queue_t *queue[2];
static struct code code[2];
static bool hostile;

enum scope { NONE = HSA_FENCE_SCOPE_NONE, AGENT = HSA_FENCE_SCOPE_AGENT, SYSTEM = HSA_FENCE_SCOPE_SYSTEM };

// Runs a kernel of `put` or `get`'s kind on one wave of a GPU, with these fences in the packet.
static void run(int gpu, const char *kernel, uint32_t grid, enum scope acquire, enum scope release, void *first, uint64_t second)
{
    struct { void *first; uint64_t second; } arguments = {first, second};
    hsa_signal_t done = signal_new(1);
    uint16_t header = (uint16_t)(HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                                 acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                 release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    dispatch_fenced(&m, queue[gpu], header, code_kernel(&code[gpu], kernel), grid, N, 0, &arguments, sizeof arguments, done);
    wait_for(done, kernel);
    CHECK(hsa_signal_destroy(done));
}

// All numbers are `wanted`; or, where a fence is missing and the machine is hostile, all are `stale`.
static void check(const unsigned *numbers, unsigned wanted, bool fenced, unsigned stale, const char *what)
{
    for (int i = 0; i < N; i++) {
        if (fenced) EXPECT(numbers[i] == wanted, "%s: number %d to be %u, it is %u", what, i, wanted, numbers[i]);
        else if (hostile) EXPECT(numbers[i] == stale, "%s: number %d to be stale (%u), it is %u", what, i, stale, numbers[i]);
    }
}

static void barrier(int gpu, enum scope acquire, enum scope release)
{
    hsa_signal_t done = signal_new(1);
    hsa_barrier_and_packet_t packet = {
        .header = (uint16_t)(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                             acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                             release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE),
        .completion_signal = done,
    };
    submit(queue[gpu], &packet);
    wait_for(done, "a barrier");
    CHECK(hsa_signal_destroy(done));
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    hostile = argc > 2 && !strcmp(argv[2], "hostile");
    m = machine_start(2);
    hsa_agent_t both[2] = {m.gpu[0].agent, m.gpu[1].agent};
    hsa_amd_memory_pool_access_t access;
    CHECK(hsa_amd_agent_memory_pool_get_info(both[1], m.gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
    if (access == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) {
        printf("coherence: skipped, these GPUs do not reach each other's memory\n");
        return SKIPPED;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(hsa_queue_create(both[i], 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue[i]));
        code[i] = code_load(argv[1], both[i]);
    }
    unsigned *seen = host_alloc(&m, 4096), *data = device_alloc(&m.gpu[0], 4096);
    CHECK(hsa_amd_agents_allow_access(2, both, NULL, data));

    // Who sees what a kernel stored: another GPU, at a release of the packet, of the kernel itself, or of a later barrier.
    unsigned value = 1;
    run(0, "put.kd", N, SYSTEM, SYSTEM, data, value);
    struct { const char *kernel; enum scope release; bool fenced; } stores[] = {
        {"put.kd", NONE, false}, {"put.kd", AGENT, false}, {"put.kd", SYSTEM, true}, {"put_release.kd", NONE, true},
    };
    for (unsigned i = 0; i < sizeof stores / sizeof *stores; i++) {
        value++;
        run(0, stores[i].kernel, N, SYSTEM, stores[i].release, data, value);
        run(1, "get.kd", N, SYSTEM, SYSTEM, seen, (uint64_t)data);
        check(seen, value, stores[i].fenced, value - 1, "a store seen by the other GPU");
        // The GPU that stored sees its own, whatever the fences.
        run(0, "get.kd", N, AGENT, SYSTEM, seen, (uint64_t)data);
        check(seen, value, true, 0, "a store seen by its own GPU");
        barrier(0, NONE, SYSTEM);
        run(1, "get.kd", N, SYSTEM, SYSTEM, seen, (uint64_t)data);
        check(seen, value, true, 0, "a store seen after a barrier's release");
    }

    // Who sees a store of another GPU: an acquire of the packet, of the kernel itself, or of an earlier barrier.
    struct { const char *kernel; enum scope acquire; bool barrier, fenced; } loads[] = {
        {"get.kd", NONE, false, false}, {"get.kd", AGENT, false, false}, {"get.kd", SYSTEM, false, true},
        {"get_acquire.kd", NONE, false, true}, {"get.kd", NONE, true, true},
    };
    for (unsigned i = 0; i < sizeof loads / sizeof *loads; i++) {
        run(1, "get.kd", N, SYSTEM, SYSTEM, seen, (uint64_t)data); // It has the old numbers in its cache now.
        value++;
        run(0, "put.kd", N, SYSTEM, SYSTEM, data, value);
        if (loads[i].barrier) barrier(1, SYSTEM, NONE);
        run(1, loads[i].kernel, N, loads[i].acquire, SYSTEM, seen, (uint64_t)data);
        check(seen, value, loads[i].fenced, value - 1, "another GPU's store");
    }

    // A copy engine sees memory. Where copies are kernels they see the cache of the GPU that they run on.
    const char *sdma = getenv("HSA_ENABLE_SDMA");
    bool engines = !sdma || strcmp(sdma, "0") != 0;
    for (int released = 0; released < 2; released++) {
        value++;
        run(0, "put.kd", N, SYSTEM, released ? SYSTEM : NONE, data, value);
        copy(seen, m.cpu, data, both[0], N * 4);
        check(seen, value, released || !engines, value - 1, "a copy");
    }

    // Fine-grained memory needs no fence once the kernel has ended.
    value++;
    run(0, "put.kd", N, NONE, NONE, seen, value);
    check(seen, value, true, 0, "fine-grained memory");

    // Work-groups that wait for each other: the second's store is seen after an acquire of the agent's scope.
    unsigned *meeting = device_alloc(&m.gpu[0], 4096);
    for (uint64_t acquire = 0; acquire < 2; acquire++) {
        CHECK(hsa_amd_memory_fill(meeting, 0, 1024));
        run(0, "meet.kd", 2 * N, SYSTEM, SYSTEM, meeting, acquire);
        copy(seen, m.cpu, meeting, both[0], 32);
        EXPECT(seen[2] == 7 && seen[3] == 0, "the store behind the load: %u, %u", seen[2], seen[3]);
        if (acquire) EXPECT(seen[4] == 7, "the store to be seen after the acquire, not %u", seen[4]);
        else if (hostile) EXPECT(seen[4] == 0, "the store not to be seen without an acquire, not %u", seen[4]);
    }

    for (int i = 0; i < 2; i++) {
        CHECK(hsa_queue_destroy(queue[i]));
        CHECK(hsa_executable_destroy(code[i].executable));
    }
    CHECK(hsa_shut_down());
    printf("coherence: ok\n");
    return 0;
}
