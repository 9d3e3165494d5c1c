// A job of two processes that never ends: it is there to be killed, at any point (`cargo xtask soak vgpu-kill`). Memory and
// signals shared both ways, kernels, copies, queues and allocations that come and go. argv[1]: kernels.cl, compiled.
#include "code.h"
#include <sys/prctl.h>

enum { SIZE = 1 << 20, N = 4096 };

struct offer {
    hsa_amd_ipc_memory_t memory;
    hsa_amd_ipc_signal_t signal;
};

static void run(const char *path, struct machine *m, char *shared)
{
    hsa_agent_t gpu = m->gpu[0].agent;
    struct code code = code_load(path, gpu);
    float *x = host_alloc(m, N * 4), *y = host_alloc(m, N * 4);
    for (unsigned round = 0;; round++) {
        hsa_queue_t *queue;
        hsa_signal_t done = signal_new(1);
        CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
        for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
        struct { float *y, *x; float a; unsigned n; } saxpy = {y, x, 2, N};
        dispatch(m, queue, code_kernel(&code, "saxpy.kd"), N, 256, 0, &saxpy, sizeof saxpy, done);
        wait_for(done, "a kernel");
        for (int i = 0; i < N; i++) EXPECT(y[i] == 2 * (float)i + 1, "y[%d], it is %g", i, (double)y[i]);
        char *memory = device_alloc(&m->gpu[0], SIZE), *host = host_alloc(m, SIZE);
        copy(memory, gpu, shared, gpu, SIZE);
        copy(host, m->cpu, memory, gpu, SIZE);
        pattern_check(host, SIZE, 1, "the other process's memory");
        if (round % 4 == 3) {
            // A kernel that never ends dies with its process.
            unsigned *flags = host_alloc(m, 8);
            struct { unsigned *flag, *done; } spin = {flags, flags + 1};
            hsa_signal_store_relaxed(done, 1);
            dispatch(m, queue, code_kernel(&code, "spin.kd"), 64, 64, 0, &spin, sizeof spin, done);
            if (round % 8 == 7) for (;;) pause();
            usleep(2000);
            __atomic_store_n(flags, 1, __ATOMIC_RELEASE);
            wait_for(done, "a kernel that spun");
            CHECK(hsa_amd_memory_pool_free(flags));
        }
        CHECK(hsa_amd_memory_pool_free(memory));
        CHECK(hsa_amd_memory_pool_free(host));
        CHECK(hsa_queue_destroy(queue));
        CHECK(hsa_signal_destroy(done));
    }
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    if (argc > 2) {
        struct offer offer;
        void *shared;
        hsa_signal_t ready;
        EXPECT(read(atoi(argv[2]), &offer, sizeof offer) == sizeof offer, "an offer");
        struct machine m = machine_start(1);
        CHECK(hsa_amd_ipc_memory_attach(&offer.memory, SIZE, 1, &m.gpu[0].agent, &shared));
        CHECK(hsa_amd_ipc_signal_attach(&offer.signal, &ready));
        hsa_signal_subtract_screlease(ready, 1);
        run(argv[1], &m, shared);
    }
    int pipe_[2];
    EXPECT(pipe(pipe_) == 0, "a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        close(pipe_[1]);
        snprintf(number, sizeof number, "%d", pipe_[0]);
        execl("/proc/self/exe", argv[0], argv[1], number, (char *)NULL);
        _exit(127);
    }
    struct machine m = machine_start(1);
    struct offer offer;
    char *shared = device_alloc(&m.gpu[0], SIZE), *host = host_alloc(&m, SIZE);
    pattern_fill(host, SIZE, 1);
    copy(shared, m.gpu[0].agent, host, m.cpu, SIZE);
    CHECK(hsa_amd_ipc_memory_create(shared, SIZE, &offer.memory));
    hsa_signal_t ready;
    CHECK(hsa_amd_signal_create(1, 0, NULL, HSA_AMD_SIGNAL_IPC, &ready));
    CHECK(hsa_amd_ipc_signal_create(ready, &offer.signal));
    EXPECT(write(pipe_[1], &offer, sizeof offer) == sizeof offer, "the offer to be sent");
    wait_for(ready, "the other process");
    printf("running %d\n", pid);
    run(argv[1], &m, shared);
}
