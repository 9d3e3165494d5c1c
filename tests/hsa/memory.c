// Device memory is finite, and comes back: when it is freed, and when the process that held it is killed. Run it with a
// small VGPU_MEMORY, or on any card: it asks for all there is.
#include "common.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { CHUNK = 16 << 20, MOST = 65536 };

static struct machine m;

// Allocates until there is no more; returns the number of chunks.
static int take_all(void **chunks)
{
    int n = 0;
    while (n < MOST && hsa_amd_memory_pool_allocate(m.gpu[0].vram, CHUNK, 0, &chunks[n]) == HSA_STATUS_SUCCESS) n++;
    return n;
}

static int count(void)
{
    static void *chunks[MOST];
    int n = take_all(chunks);
    for (int i = 0; i < n; i++) CHECK(hsa_amd_memory_pool_free(chunks[i]));
    return n;
}

// The driver's own count, where ROCr passes it on (6.x: HSA_AMD_AGENT_INFO_MEMORY_AVAIL).
static void available(void)
{
    enum { MEMORY_AVAILABLE = 0xA015 };
    uint64_t before, during, after;
    void *chunk;
    if (hsa_agent_get_info(m.gpu[0].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, &before) != HSA_STATUS_SUCCESS) return;
    CHECK(hsa_amd_memory_pool_allocate(m.gpu[0].vram, CHUNK, 0, &chunk));
    CHECK(hsa_agent_get_info(m.gpu[0].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, &during));
    CHECK(hsa_amd_memory_pool_free(chunk));
    CHECK(hsa_agent_get_info(m.gpu[0].agent, (hsa_agent_info_t)MEMORY_AVAILABLE, &after));
    EXPECT(before - during == CHUNK && after == before, "%d bytes less and back; %lu, %lu, %lu", CHUNK, before, during, after);
}

int main(int argc, char **argv)
{
    static void *chunks[MOST];
    if (argc > 1) { // the victim: takes everything, says so, and waits to be killed
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != atoi(argv[2])) return 1; // died before
        m = machine_start(1);
        int n = take_all(chunks);
        EXPECT(write(atoi(argv[1]), &n, sizeof n) == sizeof n, "the count to be sent");
        for (;;) pause();
    }
    int pipe_[2];
    EXPECT(pipe(pipe_) == 0, "a pipe");
    m = machine_start(1);
    size_t size;
    CHECK(hsa_amd_memory_pool_get_info(m.gpu[0].vram, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size));
    available();
    int all = count();
    EXPECT(all > 0 && (size_t)all <= size / CHUNK && (size_t)all >= size / CHUNK - 2, "%zu chunks, there are %d", size / CHUNK, all);
    EXPECT(count() == all, "the same again after freeing them");
    for (int round = 0; round < 3; round++) {
        pid_t parent = getpid(), pid = fork();
        if (pid == 0) {
            char number[16], parent_[16];
            snprintf(number, sizeof number, "%d", pipe_[1]);
            snprintf(parent_, sizeof parent_, "%d", parent);
            execl("/proc/self/exe", argv[0], number, parent_, (char *)NULL);
            _exit(127);
        }
        int taken;
        EXPECT(read(pipe_[0], &taken, sizeof taken) == sizeof taken, "the other process's count");
        EXPECT(taken <= all && taken >= all - 1, "%d chunks for the other process, it got %d", all, taken);
        EXPECT(count() <= 1, "nearly nothing left");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        EXPECT(count() == all, "everything again after the other process was killed");
    }
    CHECK(hsa_shut_down());
    printf("memory: ok\n");
    return 0;
}
