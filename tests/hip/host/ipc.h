// Memory and events of another process: device memory is shared with forked children at the same address, so a handle is an address.
#pragma once

struct hipIpcMemHandle_t { char reserved[64]; };
struct hipIpcEventHandle_t { char reserved[64]; };
enum { hipIpcMemLazyEnablePeerAccess = 1 };

inline hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer)
{
    return memcpy(handle->reserved, &pointer, sizeof pointer), hipSuccess;
}
inline hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned)
{
    return memcpy(pointer, handle.reserved, sizeof *pointer), hipSuccess;
}
inline hipError_t hipIpcCloseMemHandle(void *) { return hipSuccess; }
inline hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t) { return memset(handle, 0, sizeof *handle), hipSuccess; }
inline hipError_t hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t) { return hipEventCreate(event); }
