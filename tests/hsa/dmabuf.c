// dma-bufs: a part of an allocation as a descriptor, mapped again by the GPU (and by the host where device memory is on the
// bus) in this process and in another one, and alive after its allocation has been freed. Skipped before ROCr 6.
#define _GNU_SOURCE
#include "vmem.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { SIZE = 4 << 20 };

// Copies what a descriptor names to host memory, through the GPU, checks it and writes something else.
static void use(struct machine *m, int fd, unsigned is, unsigned becomes)
{
    hsa_agent_t gpu = m->gpu[0].agent;
    size_t size = 0, metadata = 0;
    void *memory = NULL;
    const void *data = NULL;
    CHECK(hsa_amd_interop_map_buffer(1, &gpu, fd, 0, &size, &memory, &metadata, &data));
    EXPECT(size >= SIZE, "the whole buffer, not %zu bytes", size);
    char *host = host_alloc(m, SIZE);
    copy(host, m->cpu, memory, gpu, SIZE);
    pattern_check(host, SIZE, is, "a dma-buf");
    pattern_fill(host, SIZE, becomes);
    copy(memory, gpu, host, m->cpu, SIZE);
    CHECK(hsa_amd_interop_unmap_buffer(memory));
    CHECK(hsa_amd_memory_pool_free(host));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        int fd = receive_descriptor(atoi(argv[1]));
        struct machine m = machine_start(1);
        use(&m, fd, 2, 3);
        close(fd);
        CHECK(hsa_shut_down());
        return 0;
    }
    hsa_status_t (*export_dmabuf)(const void *, size_t, int *, uint64_t *), (*close_dmabuf)(int);
    *(void **)&export_dmabuf = dlsym(RTLD_DEFAULT, "hsa_amd_portable_export_dmabuf");
    *(void **)&close_dmabuf = dlsym(RTLD_DEFAULT, "hsa_amd_portable_close_dmabuf");
    if (!export_dmabuf || !close_dmabuf) {
        printf("dmabuf: skipped, this ROCr exports none\n");
        return SKIPPED;
    }
    int sockets[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "sockets");
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        close(sockets[0]);
        snprintf(number, sizeof number, "%d", sockets[1]);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(127);
    }
    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    char *memory = device_alloc(&m.gpu[0], SIZE), *host = host_alloc(&m, SIZE);
    pattern_fill(host, SIZE, 1);
    copy(memory, gpu, host, m.cpu, SIZE);
    int fd = -1, part = -1;
    uint64_t offset = 7;
    CHECK(export_dmabuf(memory, SIZE, &fd, &offset));
    EXPECT(offset == 0 && lseek(fd, 0, SEEK_END) >= SIZE, "a descriptor of the whole buffer");
    CHECK(export_dmabuf(memory + 12288, 4096, &part, &offset));
    EXPECT(offset == 12288, "the part to start at 12288, not %lu", offset);
    CHECK(close_dmabuf(part));
    int local;
    EXPECT(export_dmabuf(&local, 4, &part, &offset) != HSA_STATUS_SUCCESS, "the stack not to be exported");
    use(&m, fd, 1, 2);
    if (large_bar(&m)) {
        char *view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        EXPECT(view != MAP_FAILED, "the host to map it");
        pattern_check(view, SIZE, 2, "the host's view");
        munmap(view, SIZE);
    }
    // The descriptor alone keeps the memory.
    CHECK(hsa_amd_memory_pool_free(memory));
    send_descriptor(sockets[0], fd);
    int status = 0;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0, "the child to succeed; status %#x", status);
    use(&m, fd, 3, 4);
    CHECK(close_dmabuf(fd));
    CHECK(hsa_shut_down());
    printf("dmabuf: ok\n");
    return 0;
}
