// Two processes, one device buffer: legacy IPC handles both ways, a handle of freed memory, and cross-memory attach
// (process_vm_readv and writev), which must refuse device memory as the card does.
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { SIZE = 3 << 20, HOST_SIZE = 3 * 4096 };

// What the parent tells the child.
struct offer {
    hsa_amd_ipc_memory_t live, freed;
    hsa_amd_ipc_signal_t signal;
    pid_t pid;
    void *device, *host;
};

static ssize_t transfer(int through_syscall, int write, pid_t pid, void *local, size_t len, struct iovec *remote, int n)
{
    struct iovec mine = {local, len};
    if (through_syscall)
        return syscall(write ? SYS_process_vm_writev : SYS_process_vm_readv, pid, &mine, 1L, remote, (long)n, 0L);
    return (write ? process_vm_writev : process_vm_readv)(pid, &mine, 1, remote, n, 0);
}

static void cross_memory(const struct offer *offer)
{
    char *local = malloc(2 * HOST_SIZE);
    for (int way = 0; way < 2; way++) {
        struct iovec host = {offer->host, HOST_SIZE};
        EXPECT(transfer(way, 0, offer->pid, local, HOST_SIZE, &host, 1) == HOST_SIZE, "host memory to be read; errno %d", errno);
        pattern_check(local, HOST_SIZE, 77, "host memory of the other process");
        for (int write = 0; write < 2; write++) {
            struct iovec device = {(char *)offer->device + 5000, 64};
            errno = 0;
            EXPECT(transfer(way, write, offer->pid, local, 64, &device, 1) == -1 && errno == EFAULT,
                   "EFAULT for device memory; errno %d", errno);
            struct iovec both[2] = {host, device};
            EXPECT(transfer(way, write, offer->pid, local, 2 * HOST_SIZE, both, 2) == HOST_SIZE,
                   "the host memory before device memory to be moved; errno %d", errno);
            struct iovec nothing = {offer->device, 0};
            EXPECT(transfer(way, write, offer->pid, local, 64, &nothing, 1) == 0, "nothing to be moved; errno %d", errno);
        }
    }
    free(local);
}

static int child(int in)
{
    struct offer offer;
    EXPECT(read(in, &offer, sizeof offer) == sizeof offer, "an offer");
    // Before this process has touched a device: CMA is refused all the same.
    cross_memory(&offer);
    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    void *there = NULL;
    // ROCr 6.4 may be told to pass memory by a descriptor over a socket. It then never answers a handle that it no longer knows, and the
    // importer asks for ever; and it does not map what it imported for the host.
    const char *legacy = getenv("HSA_ENABLE_IPC_MODE_LEGACY");
    bool by_kernel = !legacy || strcmp(legacy, "0") != 0;
    if (by_kernel)
        EXPECT(hsa_amd_ipc_memory_attach(&offer.freed, SIZE, 1, &gpu, &there) != HSA_STATUS_SUCCESS,
               "a handle of freed memory to be refused");
    CHECK(hsa_amd_ipc_memory_attach(&offer.live, SIZE, 1, &gpu, &there));
    char *host = host_alloc(&m, SIZE);
    copy(host, m.cpu, there, gpu, SIZE);
    pattern_check(host, SIZE, 1, "the exporter's bytes");
    if (by_kernel) EXPECT((touch(there) == 0) == large_bar(&m), "the host to reach imported memory with a large BAR only");
    pattern_fill(host, SIZE, 2);
    copy(there, gpu, host, m.cpu, SIZE);
    cross_memory(&offer);
    hsa_signal_t ready;
    CHECK(hsa_amd_ipc_signal_attach(&offer.signal, &ready));
    EXPECT(hsa_signal_load_scacquire(ready) == 2, "the exporter's signal");
    hsa_signal_subtract_screlease(ready, 1);
    copy(there, gpu, host, m.cpu, SIZE);
    hsa_signal_subtract_screlease(ready, 1);
    CHECK(hsa_signal_destroy(ready));
    CHECK(hsa_amd_ipc_memory_detach(there));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_shut_down());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return child(atoi(argv[1]));
    int pipe_[2];
    EXPECT(pipe(pipe_) == 0, "a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        close(pipe_[1]); // so that the child sees the end if the parent fails
        snprintf(number, sizeof number, "%d", pipe_[0]);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(127);
    }
    // The child may read our memory even where only descendants are allowed to be traced.
    prctl(PR_SET_PTRACER, pid, 0, 0, 0);

    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    struct offer offer = {.pid = getpid(), .device = device_alloc(&m.gpu[0], SIZE), .host = malloc(HOST_SIZE)};
    char *host = host_alloc(&m, SIZE);
    void *gone = device_alloc(&m.gpu[0], SIZE);
    CHECK(hsa_amd_ipc_memory_create(gone, SIZE, &offer.freed));
    CHECK(hsa_amd_memory_pool_free(gone));
    pattern_fill(offer.host, HOST_SIZE, 77);
    pattern_fill(host, SIZE, 1);
    copy(offer.device, gpu, host, m.cpu, SIZE);
    EXPECT((touch(offer.device) == 0) == large_bar(&m), "the host to reach device memory with a large BAR only");
    CHECK(hsa_amd_ipc_memory_create(offer.device, SIZE, &offer.live));
    hsa_signal_t ready;
    CHECK(hsa_amd_signal_create(2, 0, NULL, HSA_AMD_SIGNAL_IPC, &ready));
    CHECK(hsa_amd_ipc_signal_create(ready, &offer.signal));
    EXPECT(write(pipe_[1], &offer, sizeof offer) == sizeof offer, "the offer to be sent");

    wait_for(ready, "the importer's signal");
    CHECK(hsa_signal_destroy(ready));
    int status = 0;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0, "the child to succeed; status %#x", status);
    copy(host, m.cpu, offer.device, gpu, SIZE);
    pattern_check(host, SIZE, 2, "the importer's bytes");
    CHECK(hsa_amd_memory_pool_free(offer.device));
    CHECK(hsa_amd_memory_pool_free(host));
    CHECK(hsa_shut_down());
    printf("ipc: ok\n");
    return 0;
}
