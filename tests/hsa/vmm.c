// Virtual memory management (ROCr 6 and later; skipped before): reserve, create, map, access, and sharing a handle with
// another process by a descriptor.
#define _GNU_SOURCE
#include "vmem.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { SIZE = 4 << 20 };

// Maps a handle at a fresh address with access for the GPU.
static char *map(struct machine *m, vmem_handle handle)
{
    void *va;
    vmem_access access = {READ_WRITE, m->gpu[0].agent};
    CHECK(vmem.address_reserve(&va, SIZE, 0, 0));
    CHECK(vmem.map(va, SIZE, 0, handle, 0));
    CHECK(vmem.set_access(va, SIZE, &access, 1));
    return va;
}

static void unmap(char *va)
{
    CHECK(vmem.unmap(va, SIZE));
    CHECK(vmem.address_free(va, SIZE));
}

// Read-only access. The host's is its page table's. A GPU's is what the driver was asked for, and libdrm's amdgpu_bo_va_op, through
// which ROCr maps, asks for everything: as on the card, a GPU may store all the same.
static void read_only(struct machine *m, vmem_handle handle)
{
    hsa_agent_t gpu = m->gpu[0].agent;
    char *va = map(m, handle), *host = host_alloc(m, SIZE);
    vmem_access access[2] = {{READ_ONLY, gpu}, {READ_ONLY, m->cpu}};
    CHECK(vmem.set_access(va, SIZE, access, 2));
    int permissions = 0;
    CHECK(vmem.get_access(va, &permissions, gpu));
    EXPECT(permissions == READ_ONLY, "the access that was set, not %d", permissions);
    pattern_check(va, SIZE, 2, "what the host may read");
    EXPECT(touch(va) == SIGSEGV, "the host's store to be refused");
    pattern_fill(host, SIZE, 3);
    copy(va, gpu, host, m->cpu, SIZE);
    pattern_check(va, SIZE, 3, "what the GPU stored");
    access[1].permissions = READ_WRITE;
    CHECK(vmem.set_access(va, SIZE, access + 1, 1));
    EXPECT(touch(va) == 0, "the host's store to be done");
    pattern_fill(va, SIZE, 2);
    unmap(va);
    CHECK(hsa_amd_memory_pool_free(host));
}

static int child(int socket)
{
    struct machine m = machine_start(1);
    vmem_handle handle;
    vmem_resolve();
    int fd = receive_descriptor(socket);
    CHECK(vmem.import_shareable_handle(fd, &handle));
    close(fd);
    char *va = map(&m, handle), *host = host_alloc(&m, SIZE);
    copy(host, m.cpu, va, m.gpu[0].agent, SIZE);
    pattern_check(host, SIZE, 1, "the exporter's bytes");
    pattern_fill(host, SIZE, 2);
    copy(va, m.gpu[0].agent, host, m.cpu, SIZE);
    unmap(va);
    CHECK(vmem.handle_release(handle));
    CHECK(hsa_shut_down());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return child(atoi(argv[1]));
    if (!vmem_resolve()) {
        printf("vmm: skipped, this ROCr has no hsa_amd_vmem_*\n");
        return SKIPPED;
    }
    int sockets[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "sockets");
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        close(sockets[0]); // so that the child sees the end if the parent fails
        snprintf(number, sizeof number, "%d", sockets[1]);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(127);
    }

    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    vmem_handle handle, again;
    CHECK(vmem.handle_create(m.gpu[0].vram, SIZE, PINNED, 0, &handle));
    char *va = map(&m, handle), *host = host_alloc(&m, SIZE);
    int permissions = 0;
    CHECK(vmem.get_access(va, &permissions, gpu));
    EXPECT(permissions == READ_WRITE, "read and write access, not %d", permissions);
    pattern_fill(host, SIZE, 1);
    copy(va, gpu, host, m.cpu, SIZE);

    // A second mapping of the same memory, through a descriptor.
    int fd;
    CHECK(vmem.export_shareable_handle(&fd, handle, 0));
    EXPECT(lseek(fd, 0, SEEK_END) == SIZE, "a descriptor as long as the memory");
    CHECK(vmem.import_shareable_handle(fd, &again));
    char *alias = map(&m, again);
    memset(host, 0, SIZE);
    copy(host, m.cpu, alias, gpu, SIZE);
    pattern_check(host, SIZE, 1, "the second mapping");

    send_descriptor(sockets[0], fd);
    close(fd);
    int status = 0;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0, "the child to succeed; status %#x", status);
    copy(host, m.cpu, va, gpu, SIZE);
    pattern_check(host, SIZE, 2, "the importer's bytes");

    // A peer may use it, too.
    if (m.gpus > 1) {
        vmem_access peers[2] = {{READ_WRITE, gpu}, {READ_WRITE, m.gpu[1].agent}};
        hsa_amd_memory_pool_access_t reach;
        CHECK(hsa_amd_agent_memory_pool_get_info(m.gpu[1].agent, m.gpu[0].vram, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &reach));
        if (reach == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) {
            EXPECT(vmem.set_access(alias, SIZE, peers, 2) != HSA_STATUS_SUCCESS, "access of a peer that cannot reach it");
            goto done;
        }
        CHECK(vmem.set_access(alias, SIZE, peers, 2));
        hsa_agent_t both[2] = {gpu, m.gpu[1].agent};
        char *other = device_alloc(&m.gpu[1], SIZE);
        CHECK(hsa_amd_agents_allow_access(2, both, NULL, other));
        copy(other, m.gpu[1].agent, alias, gpu, SIZE);
        memset(host, 0, SIZE);
        copy(host, m.cpu, other, m.gpu[1].agent, SIZE);
        pattern_check(host, SIZE, 2, "the peer's copy");
        CHECK(hsa_amd_memory_pool_free(other));
    }
done:;

    // The host may look at it when it is given access.
    vmem_access access = {READ_WRITE, m.cpu};
    CHECK(vmem.set_access(va, SIZE, &access, 1));
    pattern_check(va, SIZE, 2, "the host's view");
    read_only(&m, again);

    // Of host memory ROCr makes none of this, in no way, which is why memory in a CPU's place is refused to CUDA programs: neither from the
    // host's pool, nor from the descriptor of a file in memory, nor can such a file be pinned where addresses are reserved.
    vmem_handle none;
    EXPECT(vmem.handle_create(m.host, SIZE, PINNED, 0, &none) == HSA_STATUS_ERROR_INVALID_ARGUMENT, "no handle of host memory");
    int file = memfd_create("host", MFD_CLOEXEC);
    EXPECT(file >= 0 && ftruncate(file, SIZE) == 0, "a file in memory");
    EXPECT(vmem.import_shareable_handle(file, &none) != HSA_STATUS_SUCCESS, "no handle of a file in memory");
    void *reserved, *pinned;
    CHECK(vmem.address_reserve(&reserved, SIZE, 0, 0));
    EXPECT(mmap(reserved, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == reserved, "the file at reserved addresses");
    EXPECT(hsa_amd_memory_lock_to_pool(reserved, SIZE, &gpu, 1, m.host, 0, &pinned) != HSA_STATUS_SUCCESS, "no pinned memory there");
    close(file);
    CHECK(vmem.address_free(reserved, SIZE));

    unmap(alias);
    unmap(va);
    CHECK(vmem.handle_release(again));
    CHECK(vmem.handle_release(handle));
    CHECK(hsa_shut_down());
    printf("vmm: ok\n");
    return 0;
}
