// What the HSA test programs share: checks that end the program, agents and pools, copies that are waited for.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Exit status of a program that cannot run here (automake's convention).
enum { SKIPPED = 77 };

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        hsa_status_t status_ = (call);                                                                \
        if (status_ != HSA_STATUS_SUCCESS) fail(__FILE__, __LINE__, #call, status_);                  \
    } while (0)

#define EXPECT(condition, ...)                                                                        \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "%s:%d: expected %s: ", __FILE__, __LINE__, #condition);                  \
            fprintf(stderr, __VA_ARGS__);                                                             \
            fputc('\n', stderr);                                                                      \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

static inline void fail(const char *file, int line, const char *what, hsa_status_t status)
{
    const char *text = "?";
    hsa_status_string(status, &text);
    fprintf(stderr, "%s:%d: %s: %#x %s\n", file, line, what, status, text);
    exit(1);
}

enum { MAX_GPUS = 16 };

struct gpu {
    hsa_agent_t agent;
    hsa_amd_memory_pool_t vram; // coarse-grained device memory
};

struct machine {
    hsa_agent_t cpu;
    hsa_amd_memory_pool_t host;    // fine-grained host memory
    hsa_amd_memory_pool_t kernarg; // the same, for kernel arguments
    struct gpu gpu[MAX_GPUS];
    int gpus;
};

static inline hsa_status_t machine_pool(hsa_amd_memory_pool_t pool, void *data)
{
    hsa_amd_memory_pool_t *found = data; // [0] coarse, [1] fine, [2] kernarg
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) found[2] = pool;
    else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) found[0] = pool;
    else if (flags == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) found[1] = pool;
    return HSA_STATUS_SUCCESS;
}

static inline hsa_status_t machine_agent(hsa_agent_t agent, void *data)
{
    struct machine *m = data;
    hsa_device_type_t type;
    hsa_amd_memory_pool_t pools[3] = {{0}};
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    CHECK(hsa_amd_agent_iterate_memory_pools(agent, machine_pool, pools));
    if (type == HSA_DEVICE_TYPE_CPU && !m->cpu.handle) {
        m->cpu = agent;
        m->host = pools[1];
        m->kernarg = pools[2];
    } else if (type == HSA_DEVICE_TYPE_GPU && m->gpus < MAX_GPUS) {
        m->gpu[m->gpus++] = (struct gpu){agent, pools[0]};
    }
    return HSA_STATUS_SUCCESS;
}

// Starts HSA and finds everything. Fails if there are fewer GPUs than wanted.
static inline struct machine machine_start(int wanted)
{
    struct machine m = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(hsa_init());
    CHECK(hsa_iterate_agents(machine_agent, &m));
    EXPECT(m.gpus >= wanted, "%d GPUs, there are %d", wanted, m.gpus);
    return m;
}

static inline void *device_alloc(const struct gpu *gpu, size_t size)
{
    void *memory = NULL;
    CHECK(hsa_amd_memory_pool_allocate(gpu->vram, size, 0, &memory));
    return memory;
}

// Host memory that every GPU of the machine can reach.
static inline void *host_alloc(const struct machine *m, size_t size)
{
    void *memory = NULL;
    hsa_agent_t agents[MAX_GPUS];
    for (int i = 0; i < m->gpus; i++) agents[i] = m->gpu[i].agent;
    CHECK(hsa_amd_memory_pool_allocate(m->host, size, 0, &memory));
    CHECK(hsa_amd_agents_allow_access(m->gpus, agents, NULL, memory));
    return memory;
}

static inline hsa_signal_t signal_new(hsa_signal_value_t value)
{
    hsa_signal_t signal;
    CHECK(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

// Waits for a signal to fall to 0, for 20 seconds.
static inline void wait_for(hsa_signal_t signal, const char *what)
{
    uint64_t frequency;
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    hsa_signal_value_t value =
        hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 20 * frequency, HSA_WAIT_STATE_BLOCKED);
    EXPECT(value == 0, "%s to finish; its signal is %ld", what, (long)value);
}

static inline void copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size)
{
    hsa_signal_t done = signal_new(1);
    CHECK(hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, 0, NULL, done));
    wait_for(done, "a copy");
    CHECK(hsa_signal_destroy(done));
}

// Bytes that depend on their position and on a seed.
static inline void pattern_fill(void *memory, size_t size, unsigned seed)
{
    unsigned char *bytes = memory;
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 9) + seed);
}

static inline void pattern_check(const void *memory, size_t size, unsigned seed, const char *what)
{
    const unsigned char *bytes = memory;
    for (size_t i = 0; i < size; i++) {
        unsigned char expected = (unsigned char)(i * 7 + (i >> 9) + seed);
        EXPECT(bytes[i] == expected, "%s: byte %zu of %zu is %#x, not %#x", what, i, size, bytes[i], expected);
    }
}

// Puts a packet into a queue and rings the doorbell. `packet` is 64 bytes, its header first.
static inline uint64_t submit(hsa_queue_t *queue, const void *packet)
{
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) usleep(10);
    uint32_t *slot = (uint32_t *)queue->base_address + index % queue->size * 16;
    memcpy(slot + 1, (const uint32_t *)packet + 1, 60);
    __atomic_store_n(slot, *(const uint32_t *)packet, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
    return index;
}

// A packet header with system-scope fences.
static inline uint16_t packet_header(int type)
{
    return (uint16_t)(type << HSA_PACKET_HEADER_TYPE | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

static sigjmp_buf touch_back;

static inline void touch_failed(int number)
{
    siglongjmp(touch_back, number);
}

// Loads and stores a byte. Returns 0, or the signal that it raised.
static inline int touch(volatile char *byte)
{
    struct sigaction action = {.sa_handler = touch_failed}, segv, bus;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    int number = sigsetjmp(touch_back, 1);
    if (!number) *byte = *byte;
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return number;
}

// Whether the host may address device memory (a large BAR).
static inline bool large_bar(const struct machine *m)
{
    hsa_amd_memory_pool_access_t access;
    CHECK(hsa_amd_agent_memory_pool_get_info(m->cpu, m->gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
    return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}
