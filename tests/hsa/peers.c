// Two GPUs of one hive: links, copies between them, access granted and withheld.
#include "common.h"

enum { SIZE = 1 << 20 };

int main(void)
{
    struct machine m = machine_start(2);
    hsa_agent_t a = m.gpu[0].agent, b = m.gpu[1].agent;
    hsa_amd_memory_pool_access_t access;
    CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
    EXPECT(access == HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT, "peers that may be given access, not %d", access);
    uint32_t hops = 0;
    CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
    EXPECT(hops == 1, "one hop, not %u", hops);
    hsa_amd_memory_pool_link_info_t link;
    CHECK(hsa_amd_agent_memory_pool_get_info(b, m.gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, &link));
    EXPECT(link.link_type == HSA_AMD_LINK_INFO_TYPE_XGMI, "an XGMI link, not %d", link.link_type);

    char *on_a = device_alloc(&m.gpu[0], SIZE), *on_b = device_alloc(&m.gpu[1], SIZE), *host = host_alloc(&m, SIZE);
    hsa_agent_t both[2] = {a, b};
    CHECK(hsa_amd_agents_allow_access(2, both, NULL, on_a));
    CHECK(hsa_amd_agents_allow_access(2, both, NULL, on_b));
    for (unsigned round = 0; round < 4; round++) {
        pattern_fill(host, SIZE, round);
        copy(on_a, a, host, m.cpu, SIZE);
        copy(on_b, b, on_a, a, SIZE);
        memset(host, 0, SIZE);
        copy(host, m.cpu, on_b, b, SIZE);
        pattern_check(host, SIZE, round, "host, first GPU, second GPU, host");
    }
    CHECK(hsa_amd_memory_pool_free(on_a));
    CHECK(hsa_amd_memory_pool_free(on_b));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_shut_down());
    printf("peers: ok\n");
    return 0;
}
