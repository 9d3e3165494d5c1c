// All GPUs of a machine in pairs: links, copies between them, access granted and withheld. Over XGMI every pair is linked;
// over PCIe peers reach each other only where the memory has an address on the bus (a large BAR).
#include "common.h"

enum { SIZE = 1 << 20 };

static struct machine m;

// Copies along a chain of GPUs and back to the host.
static void pair(int from, int to, unsigned seed)
{
    hsa_agent_t a = m.gpu[from].agent, b = m.gpu[to].agent;
    hsa_amd_memory_pool_access_t access;
    CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[from].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
    char *host = host_alloc(&m, SIZE), *back = host_alloc(&m, SIZE);
    char *on_a = device_alloc(&m.gpu[from], SIZE), *on_b = device_alloc(&m.gpu[to], SIZE);
    pattern_fill(host, SIZE, seed);
    if (access == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) {
        EXPECT(!large_bar(&m), "peers to have access where device memory is on the bus");
        hsa_agent_t both[2] = {a, b};
        EXPECT(hsa_amd_agents_allow_access(2, both, NULL, on_a) != HSA_STATUS_SUCCESS, "access to be refused");
        // The way through the host works all the same.
        copy(on_a, a, host, m.cpu, SIZE);
        copy(back, m.cpu, on_a, a, SIZE);
        copy(on_b, b, back, m.cpu, SIZE);
    } else {
        EXPECT(access == HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT, "peers that may be given access, not %d", access);
        uint32_t hops = 0;
        CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[from].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
        EXPECT(hops >= 1, "a link, not %u hops", hops);
        hsa_amd_memory_pool_link_info_t link[8];
        CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[from].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, link));
        bool xgmi = link[0].link_type == HSA_AMD_LINK_INFO_TYPE_XGMI;
        EXPECT(xgmi || link[0].link_type == HSA_AMD_LINK_INFO_TYPE_PCIE, "an XGMI or PCIe link, not %d", link[0].link_type);
        EXPECT(link[0].numa_distance >= (xgmi ? 15u : 40u), "a distance, not %u", link[0].numa_distance);
        EXPECT(link[0].max_bandwidth >= link[0].min_bandwidth && link[0].min_bandwidth > 0, "bandwidths");
        hsa_agent_t both[2] = {a, b};
        CHECK(hsa_amd_agents_allow_access(2, both, NULL, on_a));
        CHECK(hsa_amd_agents_allow_access(2, both, NULL, on_b));
        copy(on_a, a, host, m.cpu, SIZE);
        copy(on_b, b, on_a, a, SIZE);
    }
    memset(back, 0, SIZE);
    copy(back, m.cpu, on_b, b, SIZE);
    pattern_check(back, SIZE, seed, "host, one GPU, another, host");
    CHECK(hsa_amd_memory_pool_free(on_a));
    CHECK(hsa_amd_memory_pool_free(on_b));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_amd_memory_pool_free(back));
}

// Each GPU has memory of its own: what one takes, the others keep.
static void separate(void)
{
    enum { MEMORY_AVAILABLE = 0xA015, CHUNK = 64 << 20 };
    uint64_t before[MAX_GPUS], during;
    if (hsa_agent_get_info(m.gpu[0].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, before) != HSA_STATUS_SUCCESS) return;
    for (int i = 0; i < m.gpus; i++) CHECK(hsa_agent_get_info(m.gpu[i].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, &before[i]));
    void *chunk = device_alloc(&m.gpu[m.gpus - 1], CHUNK);
    for (int i = 0; i < m.gpus; i++) {
        CHECK(hsa_agent_get_info(m.gpu[i].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, &during));
        uint64_t taken = i == m.gpus - 1 ? CHUNK : 0;
        EXPECT(before[i] - during == taken, "GPU %d to have %lu bytes less, it has %lu", i, taken, before[i] - during);
    }
    CHECK(hsa_amd_memory_pool_free(chunk));
}

int main(void)
{
    m = machine_start(2);
    // Every GPU has another name on the bus.
    for (int i = 0; i < m.gpus; i++)
        for (int j = 0; j < i; j++) {
            uint32_t a = 0, b = 0;
            CHECK(hsa_agent_get_info(m.gpu[i].agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_BDFID, &a));
            CHECK(hsa_agent_get_info(m.gpu[j].agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_BDFID, &b));
            EXPECT(a != b, "GPUs %d and %d to be two", i, j);
        }
    unsigned seed = 0;
    for (int i = 0; i < m.gpus; i++)
        for (int j = 0; j < m.gpus; j++)
            // All pairs of two, and of more each with the first and with its neighbour.
            if (i != j && (m.gpus <= 2 || i == 0 || j == (i + 1) % m.gpus)) pair(i, j, seed++);
    separate();
    CHECK(hsa_shut_down());
    printf("peers: ok\n");
    return 0;
}
