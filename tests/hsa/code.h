// Loading a code object and dispatching its kernels.
#pragma once

#include "common.h"
#include <fcntl.h>

struct code {
    hsa_executable_t executable;
    hsa_agent_t agent;
};

static inline struct code code_load(const char *path, hsa_agent_t agent)
{
    struct code code = {.agent = agent};
    hsa_code_object_reader_t reader;
    int fd = open(path, O_RDONLY);
    EXPECT(fd >= 0, "%s to be there", path);
    CHECK(hsa_code_object_reader_create_from_file(fd, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &code.executable));
    CHECK(hsa_executable_load_agent_code_object(code.executable, agent, reader, NULL, NULL));
    CHECK(hsa_executable_freeze(code.executable, NULL));
    CHECK(hsa_code_object_reader_destroy(reader));
    close(fd);
    return code;
}

static inline uint64_t code_kernel(const struct code *code, const char *name)
{
    hsa_executable_symbol_t symbol;
    uint64_t object;
    CHECK(hsa_executable_get_symbol_by_name(code->executable, name, &code->agent, &symbol));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    return object;
}

// Dispatches a one-dimensional grid, with `private_size` bytes of private memory for each work-item. `arguments` are copied
// into fresh kernel-argument memory, which is left to the end of the program: these programs are short.
static inline void dispatch_packet(const struct machine *m, hsa_queue_t *queue, uint16_t header, uint64_t kernel,
                                   uint32_t grid, uint16_t group, uint32_t lds, uint32_t private_size,
                                   const void *arguments, size_t size, hsa_signal_t done)
{
    void *kernarg;
    hsa_agent_t agents[MAX_GPUS];
    for (int i = 0; i < m->gpus; i++) agents[i] = m->gpu[i].agent;
    CHECK(hsa_amd_memory_pool_allocate(m->kernarg, 4096, 0, &kernarg));
    CHECK(hsa_amd_agents_allow_access((uint32_t)m->gpus, agents, NULL, kernarg));
    memset(kernarg, 0, 4096);
    memcpy(kernarg, arguments, size);
    hsa_kernel_dispatch_packet_t packet = {
        .header = header,
        .setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS,
        .workgroup_size_x = group,
        .workgroup_size_y = 1,
        .workgroup_size_z = 1,
        .grid_size_x = grid,
        .grid_size_y = 1,
        .grid_size_z = 1,
        .private_segment_size = private_size,
        .group_segment_size = lds,
        .kernel_object = kernel,
        .kernarg_address = kernarg,
        .completion_signal = done,
    };
    submit(queue, &packet);
}

// Fences of system scope, and after all earlier packets.
static inline uint16_t fenced(void)
{
    return (uint16_t)(packet_header(HSA_PACKET_TYPE_KERNEL_DISPATCH) | 1 << HSA_PACKET_HEADER_BARRIER);
}

// The same with fences of the caller's choice.
static inline void dispatch_fenced(const struct machine *m, hsa_queue_t *queue, uint16_t header, uint64_t kernel,
                                   uint32_t grid, uint16_t group, uint32_t lds, const void *arguments, size_t size,
                                   hsa_signal_t done)
{
    dispatch_packet(m, queue, header, kernel, grid, group, lds, 0, arguments, size, done);
}

// The same with private memory.
static inline void dispatch_private(const struct machine *m, hsa_queue_t *queue, uint64_t kernel, uint32_t grid, uint16_t group,
                                    uint32_t lds, uint32_t private_size, const void *arguments, size_t size, hsa_signal_t done)
{
    dispatch_packet(m, queue, fenced(), kernel, grid, group, lds, private_size, arguments, size, done);
}

// The same with neither.
static inline void dispatch(const struct machine *m, hsa_queue_t *queue, uint64_t kernel, uint32_t grid, uint16_t group,
                            uint32_t lds, const void *arguments, size_t size, hsa_signal_t done)
{
    dispatch_packet(m, queue, fenced(), kernel, grid, group, lds, 0, arguments, size, done);
}
