// ROCr's virtual memory management, where there is one (6.x), and descriptors between processes.
#pragma once

#include "common.h"
#include <dlfcn.h>
#include <sys/socket.h>

// Declared here because older headers lack them.
typedef struct { uint64_t handle; } vmem_handle;
typedef struct { int permissions; hsa_agent_t agent; } vmem_access;
enum { PINNED = 1, READ_ONLY = 1, READ_WRITE = 3 };

static struct {
    hsa_status_t (*address_reserve)(void **, size_t, uint64_t, uint64_t);
    hsa_status_t (*address_free)(void *, size_t);
    hsa_status_t (*handle_create)(hsa_amd_memory_pool_t, size_t, int, uint64_t, vmem_handle *);
    hsa_status_t (*handle_release)(vmem_handle);
    hsa_status_t (*map)(void *, size_t, size_t, vmem_handle, uint64_t);
    hsa_status_t (*unmap)(void *, size_t);
    hsa_status_t (*set_access)(void *, size_t, const vmem_access *, size_t);
    hsa_status_t (*get_access)(void *, int *, hsa_agent_t);
    hsa_status_t (*export_shareable_handle)(int *, vmem_handle, uint64_t);
    hsa_status_t (*import_shareable_handle)(int, vmem_handle *);
} vmem;

static inline bool vmem_resolve(void)
{
    bool all = true;
#define RESOLVE(name) all &= (*(void **)&vmem.name = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_" #name)) != NULL
    RESOLVE(address_reserve);
    RESOLVE(address_free);
    RESOLVE(handle_create);
    RESOLVE(handle_release);
    RESOLVE(map);
    RESOLVE(unmap);
    RESOLVE(set_access);
    RESOLVE(get_access);
    RESOLVE(export_shareable_handle);
    RESOLVE(import_shareable_handle);
    return all;
}

static inline void send_descriptor(int socket, int fd)
{
    char byte = 0;
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    EXPECT(sendmsg(socket, &message, 0) == 1, "a descriptor to be sent");
}

static inline int receive_descriptor(int socket)
{
    char byte;
    int fd;
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    EXPECT(recvmsg(socket, &message, 0) == 1, "a descriptor");
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}
