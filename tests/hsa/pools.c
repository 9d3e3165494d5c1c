// Memory pools of all agents: what they say of themselves, allocations of odd sizes, access given to every agent that may
// have it, what the runtime says of pointers, and errors.
#include "common.h"

static struct machine m;
static hsa_agent_t agents[MAX_GPUS + 1];
static int count, pools;

static hsa_status_t on_agent(hsa_agent_t agent, void *data)
{
    (void)data;
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_CPU || type == HSA_DEVICE_TYPE_GPU) agents[count++] = agent;
    return HSA_STATUS_SUCCESS;
}

static void *list;
static void *keep(size_t size)
{
    return list = malloc(size);
}

// One allocation: alignment, contents through every agent that can reach it, and what its addresses are said to be.
static void block(hsa_agent_t owner, hsa_amd_memory_pool_t pool, size_t size, size_t alignment, bool host)
{
    unsigned char *memory = NULL, *back = host_alloc(&m, size), *from = host_alloc(&m, size);
    CHECK(hsa_amd_memory_pool_allocate(pool, size, 0, (void **)&memory));
    EXPECT((uint64_t)memory % alignment == 0, "%p to be a multiple of %zu", (void *)memory, alignment);
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    uint32_t reach = 0;
    CHECK(hsa_amd_pointer_info(memory + size / 2, &info, keep, &reach, (hsa_agent_t **)&list));
    EXPECT(info.type == HSA_EXT_POINTER_TYPE_HSA, "memory of ours, not type %d", info.type);
    // ROCr 5 tells whole pages.
    EXPECT(info.agentBaseAddress == memory && (info.sizeInBytes == size || info.sizeInBytes == (size + 4095) / 4096 * 4096), "%p and %zu bytes, not %p and %zu", (void *)memory, size,
           info.agentBaseAddress, info.sizeInBytes);
    EXPECT(info.agentOwner.handle == owner.handle, "the owner");
    free(list);
    // All agents that may.
    hsa_agent_t allowed[MAX_GPUS + 1];
    uint32_t n = 0;
    for (int i = 0; i < count; i++) {
        hsa_amd_memory_pool_access_t access;
        CHECK(hsa_amd_agent_memory_pool_get_info(agents[i], pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
        if (access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) allowed[n++] = agents[i];
    }
    CHECK(hsa_amd_agents_allow_access(n, allowed, NULL, memory));
    for (int i = 0; i < m.gpus; i++) {
        hsa_amd_memory_pool_access_t access;
        hsa_agent_t gpu = m.gpu[i].agent;
        CHECK(hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
        if (access == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) continue;
        pattern_fill(from, size, (unsigned)i);
        memset(back, 0, size);
        copy(memory, host ? gpu : owner, from, m.cpu, size);
        copy(back, m.cpu, memory, host ? gpu : owner, size);
        pattern_check(back, size, (unsigned)i, "a pool's memory");
    }
    if (host) {
        pattern_fill(memory, size, 99);
        pattern_check(memory, size, 99, "host memory");
    }
    CHECK(hsa_amd_memory_pool_free(memory));
    // Gone: nobody knows the address any more. (ROCr 5 keeps small blocks in larger ones, and tells of those.)
    CHECK(hsa_amd_pointer_info(memory, &info, NULL, NULL, NULL));
    EXPECT(size < 2 << 20 || info.type == HSA_EXT_POINTER_TYPE_UNKNOWN, "freed memory to be unknown, not type %d", info.type);
    CHECK(hsa_amd_memory_pool_free(back));
    CHECK(hsa_amd_memory_pool_free(from));
}

static hsa_status_t on_pool(hsa_amd_memory_pool_t pool, void *data)
{
    hsa_agent_t owner = *(hsa_agent_t *)data;
    hsa_amd_segment_t segment;
    bool allowed = false;
    size_t size = 0, granule = 0, alignment = 0;
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(owner, HSA_AGENT_INFO_DEVICE, &type));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    if (segment == HSA_AMD_SEGMENT_GROUP) {
        EXPECT(size == 64 << 10 && !allowed, "64 KiB of LDS that nobody allocates, not %zu", size);
        return HSA_STATUS_SUCCESS;
    }
    if (!allowed) return HSA_STATUS_SUCCESS;
    pools++;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, &alignment));
    EXPECT(size >= 16 << 20 && granule >= 4096 && alignment >= 4096, "sizes, not %zu, %zu, %zu", size, granule, alignment);
    bool host = type == HSA_DEVICE_TYPE_CPU;
    static const size_t sizes[] = {1, 100, 4096, 4097, 65536, (1 << 20) + 3, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) block(owner, pool, sizes[i], 4096, host);
    void *memory = NULL;
    EXPECT(hsa_amd_memory_pool_allocate(pool, 0, 0, &memory) != HSA_STATUS_SUCCESS, "an allocation of nothing to fail");
    if (!host) EXPECT(hsa_amd_memory_pool_allocate(pool, size + (1 << 20), 0, &memory) != HSA_STATUS_SUCCESS, "more than all to fail");
    return HSA_STATUS_SUCCESS;
}

// Many blocks at a time never overlap, and all come back.
static void many(void)
{
    enum { BLOCKS = 300 };
    unsigned *block[BLOCKS], *back = host_alloc(&m, 4096);
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = device_alloc(&m.gpu[i % (unsigned)m.gpus], 4096 * (1 + i % 5));
        CHECK(hsa_amd_memory_fill(block[i], i, 1024 * (1 + i % 5)));
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned last = 1024 * (i % 5);
        copy(back, m.cpu, block[i] + last, m.gpu[i % (unsigned)m.gpus].agent, 4096);
        for (int j = 0; j < 1024; j++) EXPECT(back[j] == i, "block %u to hold its number, it has %u", i, back[j]);
        CHECK(hsa_amd_memory_pool_free(block[i]));
    }
    CHECK(hsa_amd_memory_pool_free(back));
}

int main(void)
{
    m = machine_start(1);
    CHECK(hsa_iterate_agents(on_agent, NULL));
    EXPECT(count == m.gpus + 1, "a CPU and %d GPUs, not %d agents", m.gpus, count);
    for (int i = 0; i < count; i++) CHECK(hsa_amd_agent_iterate_memory_pools(agents[i], on_pool, &agents[i]));
    EXPECT(pools >= 2 + m.gpus, "pools of host and devices, not %d", pools);
    many();
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    int local;
    CHECK(hsa_amd_pointer_info(&local, &info, NULL, NULL, NULL));
    EXPECT(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN, "the stack to be unknown");
    EXPECT(hsa_amd_memory_pool_free(&local) != HSA_STATUS_SUCCESS, "the stack not to be freed");
    CHECK(hsa_shut_down());
    printf("pools: ok\n");
    return 0;
}
