// fork: the child of a process that uses a GPU can exec, and can do without; the parent does not notice.
#include "common.h"
#include <sys/wait.h>

static void expect_exit(pid_t pid, int expected, const char *what)
{
    int status;
    alarm(20);
    EXPECT(waitpid(pid, &status, 0) == pid && status == expected << 8, "%s; status %#x", what, status);
    alarm(0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        struct machine m = machine_start(1);
        CHECK(hsa_shut_down());
        return m.gpus > 0 ? 0 : 1;
    }
    enum { SIZE = 1 << 20 };
    struct machine m = machine_start(1);
    char *host = host_alloc(&m, SIZE), *device = device_alloc(&m.gpu[0], SIZE);
    pattern_fill(host, SIZE, 1);
    copy(device, m.gpu[0].agent, host, m.cpu, SIZE);

    pid_t pid = fork();
    if (pid == 0) {
        // The driver ties a process's device state to the process: nothing may work here, and nothing may hang.
        void *memory;
        hsa_status_t status = hsa_amd_memory_pool_allocate(m.gpu[0].vram, 64 << 20, 0, &memory);
        _exit(status == HSA_STATUS_SUCCESS ? 1 : 3);
    }
    expect_exit(pid, 3, "an allocation in the child to fail");

    pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", argv[0], "child", (char *)NULL);
        _exit(127);
    }
    expect_exit(pid, 0, "a program started by the child to work");

    memset(host, 0, SIZE);
    copy(host, m.cpu, device, m.gpu[0].agent, SIZE);
    pattern_check(host, SIZE, 1, "the parent's device memory");
    CHECK(hsa_amd_memory_pool_free(device));
    CHECK(hsa_shut_down());
    printf("fork: ok\n");
    return 0;
}
