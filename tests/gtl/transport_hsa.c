/* The message layer's runtime in HSA calls alone: nothing here knows CUDA, all it has is pointers that the application got from it. */
#include "transport.h"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) return error_;                                                                                     \
    } while (0)

enum { MOST = 16, WATCHED = 64 };

static hsa_agent_t cpu, gpus[MOST];
static unsigned gpu_count;
static hsa_signal_t signals[2];
/* Host memory that a running copy has locked. */
static void *locked[2][2];

/* Buffers whose end somebody tells us; HSA has no ids, so these are ours. */
static struct watched {
    uint64_t base, id;
} buffers[WATCHED];
static uint64_t last_id;

static void gone(void *pointer, void *user) {
    struct watched *buffer = user;
    if (__atomic_load_n(&buffer->base, __ATOMIC_ACQUIRE) == (uint64_t)pointer) __atomic_store_n(&buffer->base, 0, __ATOMIC_RELEASE);
}

static hsa_status_t agent(hsa_agent_t one, void *data) {
    hsa_device_type_t type;
    (void)data;
    TRY(hsa_agent_get_info(one, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_CPU) cpu = one;
    else if (type == HSA_DEVICE_TYPE_GPU && gpu_count < MOST) gpus[gpu_count++] = one;
    return HSA_STATUS_SUCCESS;
}

int runtime_start(void) {
    TRY(hsa_init());
    TRY(hsa_iterate_agents(agent, NULL));
    for (int i = 0; i < 2; i++) TRY(hsa_signal_create(0, 0, NULL, &signals[i]));
    return 0;
}

static int info_of(const void *pointer, hsa_amd_pointer_info_t *info) {
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    return (int)hsa_amd_pointer_info((void *)pointer, info, NULL, NULL, NULL);
}

static int is_gpu(hsa_agent_t one) {
    for (unsigned i = 0; i < gpu_count; i++)
        if (gpus[i].handle == one.handle) return 1;
    return 0;
}

int runtime_query(const void *pointer, struct gtl_place *place) {
    hsa_amd_pointer_info_t info;
    memset(place, 0, sizeof *place);
    TRY(info_of(pointer, &info));
    if (info.type != HSA_EXT_POINTER_TYPE_HSA || !is_gpu(info.agentOwner)) return 0;
    *place = (struct gtl_place){1, (uint64_t)info.agentBaseAddress, info.sizeInBytes, 0};
    struct watched *unused = NULL;
    for (int i = 0; i < WATCHED; i++) {
        if (buffers[i].base == place->base) place->id = buffers[i].id;
        if (!buffers[i].base) unused = &buffers[i];
    }
    if (place->id) return 0;
    if (!unused) return (int)HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    place->id = unused->id = ++last_id;
    unused->base = place->base;
    return (int)hsa_amd_register_deallocation_callback(info.agentBaseAddress, gone, unused);
}

int runtime_register(void *segment, size_t bytes) {
    void *there;
    return (int)hsa_amd_memory_lock(segment, bytes, gpus, (int)gpu_count, &there);
}
int runtime_unregister(void *segment) { return (int)hsa_amd_memory_unlock(segment); }

int runtime_export(const struct gtl_place *place, unsigned char handle[64]) {
    hsa_amd_ipc_memory_t made;
    TRY(hsa_amd_ipc_memory_create((void *)place->base, place->size, &made));
    memset(handle, 0, 64);
    memcpy(handle, &made, sizeof made);
    return 0;
}

int runtime_open(const unsigned char handle[64], size_t size, void **base) {
    hsa_amd_ipc_memory_t copy;
    memcpy(&copy, handle, sizeof copy);
    return (int)hsa_amd_ipc_memory_attach(&copy, size, gpu_count, gpus, base);
}

int runtime_close(void *base) { return (int)hsa_amd_ipc_memory_detach(base); }

/* How an end of a copy is to be named: its agent, and its address there. Pageable host memory is locked until the copy is over. */
static int name(int which, int end, void *pointer, size_t bytes, void **there, hsa_agent_t *owner) {
    hsa_amd_pointer_info_t info;
    TRY(info_of(pointer, &info));
    *there = pointer;
    *owner = cpu;
    if (info.type == HSA_EXT_POINTER_TYPE_LOCKED) {
        *there = (char *)info.agentBaseAddress + ((char *)pointer - (char *)info.hostBaseAddress);
    } else if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN) {
        TRY(hsa_amd_memory_lock(pointer, bytes, gpus, (int)gpu_count, there));
        locked[which][end] = pointer;
    } else if (is_gpu(info.agentOwner)) {
        *owner = info.agentOwner;
    }
    return 0;
}

int runtime_copy(int which, void *to, const void *from, size_t bytes) {
    hsa_agent_t owner_to, owner_from;
    void *at, *source;
    TRY(name(which, 0, to, bytes, &at, &owner_to));
    TRY(name(which, 1, (void *)from, bytes, &source, &owner_from));
    if (!is_gpu(owner_to) && !is_gpu(owner_from)) {
        memcpy(to, from, bytes);
        return 0;
    }
    /* The other rank's memory is mapped for every GPU, this rank's own for its GPU alone: so that one's engine must copy. */
    if (is_gpu(owner_to) && is_gpu(owner_from)) owner_from = owner_to;
    hsa_signal_store_relaxed(signals[which], 1);
    return (int)hsa_amd_memory_async_copy(at, owner_to, source, owner_from, bytes, 0, NULL, signals[which]);
}

int runtime_wait(int which) {
    hsa_signal_value_t left = hsa_signal_wait_scacquire(signals[which], HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_ACTIVE);
    for (int end = 0; end < 2; end++) {
        if (locked[which][end]) TRY(hsa_amd_memory_unlock(locked[which][end]));
        locked[which][end] = NULL;
    }
    return left < 0 ? (int)HSA_STATUS_ERROR : 0;
}

int runtime_end(void) {
    for (int i = 0; i < 2; i++) TRY(hsa_signal_destroy(signals[i]));
    for (int i = 0; i < WATCHED; i++)
        if (buffers[i].base) TRY(hsa_amd_deregister_deallocation_callback((void *)buffers[i].base, gone));
    return (int)hsa_shut_down();
}
