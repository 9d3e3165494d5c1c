// Memory faults (argv[1]: kernels.cl built for the machine's GPU): each must reach the runtime with its address and stop
// its queue only; a program that does not listen is ended by ROCr with a message. ROCr reports one fault per process, so
// each case is a process of its own.
#include "code.h"
#include <sys/wait.h>

enum { NO_ACCESS, UNMAPPED, NULL_POINTER, NOBODY_LISTENS, CASES };


struct seen {
    uint64_t address;
    int events;
};

static hsa_status_t on_event(const hsa_amd_event_t *event, void *data)
{
    struct seen *seen = data;
    if (event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) seen->address = event->memory_fault.virtual_address;
    __atomic_add_fetch(&seen->events, 1, __ATOMIC_RELEASE);
    return HSA_STATUS_SUCCESS;
}

static int run(const char *path, int which)
{
    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    struct seen seen = {0};
    if (which != NOBODY_LISTENS) CHECK(hsa_amd_register_system_event_handler(on_event, &seen));
    struct code code = code_load(path, gpu);
    unsigned *hidden;
    CHECK(hsa_amd_memory_pool_allocate(m.host, 1 << 20, 0, (void **)&hidden));
    struct { unsigned *where; unsigned value; } poke = {.value = 7};
    switch (which) {
    case NO_ACCESS: poke.where = hidden + 1000; break;
    case NULL_POINTER: poke.where = NULL; break;
    default: poke.where = (unsigned *)0x123456789000; break;
    }
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    hsa_signal_t done = signal_new(1);
    dispatch(&m, queue, code_kernel(&code, "poke.kd"), 1, 1, 0, &poke, sizeof poke, done);
    for (int i = 0; i < 5000 && __atomic_load_n(&seen.events, __ATOMIC_ACQUIRE) == 0; i++) usleep(1000);
    EXPECT(seen.events == 1, "one fault to be reported");
    EXPECT(seen.address == ((uint64_t)poke.where & ~0xfffull), "a fault at %p, it is at %#lx", (void *)poke.where, seen.address);
    EXPECT(hsa_signal_load_scacquire(done) == 1, "the dispatch not to complete");
    CHECK(hsa_queue_destroy(queue));

    // Another queue works on.
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    unsigned *host = host_alloc(&m, 4096);
    poke.where = host, poke.value = 42;
    dispatch(&m, queue, code_kernel(&code, "poke.kd"), 1, 1, 0, &poke, sizeof poke, done);
    wait_for(done, "a kernel after a fault");
    EXPECT(*host == 42, "its store");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_shut_down());
    return 0;
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    if (argc > 2) return run(argv[1], atoi(argv[2]));
    for (int which = 0; which < CASES; which++) {
        int pipe_[2];
        EXPECT(pipe(pipe_) == 0, "a pipe");
        pid_t pid = fork();
        if (pid == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", which);
            dup2(pipe_[1], STDERR_FILENO);
            close(pipe_[0]);
            close(pipe_[1]);
            execl("/proc/self/exe", argv[0], argv[1], number, (char *)NULL);
            _exit(127);
        }
        close(pipe_[1]);
        static char text[1 << 16];
        size_t len = 0;
        for (ssize_t n; len < sizeof text - 1 && (n = read(pipe_[0], text + len, sizeof text - 1 - len)) > 0;) len += (size_t)n;
        text[len] = 0;
        close(pipe_[0]);
        int status;
        waitpid(pid, &status, 0);
        if (which == NOBODY_LISTENS) {
            EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == 6, "SIGABRT; status %#x, stderr:\n%s", status, text);
            EXPECT(strstr(text, "Memory access fault by GPU node-1"), "ROCr's message in:\n%s", text);
        } else {
            EXPECT(status == 0, "case %d to succeed; status %#x, stderr:\n%s", which, status, text);
        }
    }
    printf("faults: ok\n");
    return 0;
}
