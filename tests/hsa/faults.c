// Faults of kernels (argv[1]: kernels.cl, compiled): each must reach the runtime as the hardware reports it and stop its
// queue only. Page faults come as a system event with the page's address, what a wave itself sees (traps, illegal
// instructions, misaligned atomics, addresses of more than 48 bits) as the queue's error. ROCr reports one fault per
// process, so each case is a process of its own.
#define _GNU_SOURCE
#include "code.h"
#include <sys/mman.h>
#include <sys/wait.h>

// How a case is reported.
enum kind {
    PAGE,     // system event with the page's address
    QUEUE,    // the queue's callback
    ABORT,    // nobody listens: ROCr's message and SIGABRT
    KILLED,   // the kernel never ends: the process is killed
};

struct test {
    const char *name;
    enum kind kind;
    const char *kernel;
    int status;          // of the queue's callback
    const char *log;     // what the virtual GPU's log says of the instruction
};

enum { APERTURE_VIOLATION = 41, ILLEGAL_INSTRUCTION = 42 };

static const struct test tests[] = {
    {"no access", PAGE, "poke", 0, "global_store_dword"},
    {"unmapped", PAGE, "poke", 0, "global_store_dword"},
    {"null pointer", PAGE, "poke", 0, "global_store_dword"},
    {"freed", PAGE, "poke", 0, "global_store_dword"},
    {"read-only", PAGE, "poke", 0, "the mapping is read-only"},
    {"pinned, and read-only for the program", PAGE, "poke", 0, "the mapping is read-only"},
    {"not shared with this agent", PAGE, "poke", 0, "global_store_dword"},
    {"past 48 bits", QUEUE, "poke", APERTURE_VIOLATION, "global_store_dword"},
    {"misaligned atomic", QUEUE, "add_at", APERTURE_VIOLATION, "misaligned"},
    {"trap", QUEUE, "trap", HSA_STATUS_ERROR_EXCEPTION, "s_trap 2"},
    {"illegal instruction", QUEUE, "illegal", ILLEGAL_INSTRUCTION, "ffffffff"},
    {"nobody listens", ABORT, "poke", 0, "global_store_dword"},
    {"never ends", KILLED, "spin", 0, NULL},
};

enum { TESTS = sizeof tests / sizeof *tests };

static bool is(const struct test *test, const char *name)
{
    return !strcmp(test->name, name);
}

struct seen {
    uint64_t address;
    uint32_t reason;
    int events;
};

static hsa_status_t on_event(const hsa_amd_event_t *event, void *data)
{
    struct seen *seen = data;
    if (event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) {
        seen->address = event->memory_fault.virtual_address;
        seen->reason = event->memory_fault.fault_reason_mask;
    }
    __atomic_add_fetch(&seen->events, 1, __ATOMIC_RELEASE);
    return HSA_STATUS_SUCCESS;
}

static void on_error(hsa_status_t status, hsa_queue_t *queue, void *data)
{
    (void)queue;
    __atomic_store_n((int *)data, (int)status, __ATOMIC_RELEASE);
}

static int run(const char *path, const struct test *test)
{
    struct machine m = machine_start(1);
    hsa_agent_t gpu = m.gpu[0].agent;
    struct seen seen = {0};
    int error = 0;
    if (test->kind != ABORT) CHECK(hsa_amd_register_system_event_handler(on_event, &seen));
    struct code code = code_load(path, gpu);
    char *good = device_alloc(&m.gpu[0], 1 << 20);
    struct { void *where; unsigned value; void *unused; } poke = {good, 7, NULL};
    uint32_t reason = HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT;
    if (is(test, "no access")) {
        void *hidden;
        CHECK(hsa_amd_memory_pool_allocate(m.host, 1 << 20, 0, &hidden));
        poke.where = (char *)hidden + 4000;
    } else if (is(test, "null pointer")) {
        poke.where = NULL;
    } else if (is(test, "freed")) {
        poke.where = device_alloc(&m.gpu[0], 4 << 20);
        CHECK(hsa_amd_memory_pool_free(poke.where));
        // The queue below must not be put there.
        mmap(poke.where, 4 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    } else if (is(test, "read-only")) {
        // Shared virtual memory: libdrm gives VMM mappings every permission, whatever was asked for.
        bool svm = false;
        hsa_amd_svm_attribute_pair_t attributes[2] = {
            {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE, gpu.handle},
            {HSA_AMD_SVM_ATTRIB_READ_ONLY, true},
        };
        CHECK(hsa_system_get_info((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, &svm));
        if (!svm) return SKIPPED;
        poke.where = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(hsa_amd_svm_attributes_set(poke.where, 1 << 20, attributes, 2));
        reason = HSA_AMD_MEMORY_FAULT_READ_ONLY;
    } else if (is(test, "pinned, and read-only for the program")) {
        // A driver without shared virtual memory pins for writing, and refuses; ROCr 5 pins that way wherever it is.
        void *pages = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        hsa_status_t status = hsa_amd_memory_lock(pages, 1 << 20, &gpu, 1, &poke.where);
        if (status != HSA_STATUS_SUCCESS) {
            EXPECT(mprotect(pages, 1 << 20, PROT_READ | PROT_WRITE) == 0, "a page that may be written");
            CHECK(hsa_amd_memory_lock(pages, 1 << 20, &gpu, 1, &poke.where));
            return SKIPPED;
        }
        EXPECT(poke.where == pages, "memory pinned for reading to be shared virtual memory");
        reason = HSA_AMD_MEMORY_FAULT_READ_ONLY;
    } else if (is(test, "not shared with this agent")) {
        if (m.gpus < 2) return SKIPPED;
        poke.where = device_alloc(&m.gpu[1], 1 << 20);
    } else if (is(test, "past 48 bits")) {
        poke.where = (void *)0xdead000000000000;
    } else if (is(test, "misaligned atomic")) {
        poke.where = good + 6;
    } else if (is(test, "unmapped") || is(test, "nobody listens")) {
        poke.where = (void *)0x123456789000;
    } else if (is(test, "never ends")) {
        poke.where = memset(host_alloc(&m, 4096), 0, 4096);
        poke.unused = poke.where;
        void *both[2] = {poke.where, (char *)poke.where + 4};
        memcpy(&poke, both, sizeof both);
    }
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, on_error, &error, UINT32_MAX, UINT32_MAX, &queue));
    hsa_signal_t done = signal_new(1);
    char kernel[32];
    snprintf(kernel, sizeof kernel, "%s.kd", test->kernel);
    uint32_t grid = is(test, "trap") ? 512 : 1, group = is(test, "trap") ? 128 : 1;
    dispatch(&m, queue, code_kernel(&code, kernel), grid, group, 0, &poke, sizeof poke, done);
    if (test->kind == KILLED) {
        printf("spinning\n");
        for (;;) pause();
    }
    for (int i = 0; i < 10000 && !__atomic_load_n(&seen.events, __ATOMIC_ACQUIRE) && !__atomic_load_n(&error, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    if (test->kind == QUEUE) {
        EXPECT(error == test->status, "the queue's error to be %d, it is %d", test->status, error);
        EXPECT(seen.events == 0, "no system event, there are %d", seen.events);
    } else {
        EXPECT(seen.events == 1 && error == 0, "one system event, not %d; the queue's error is %d", seen.events, error);
        EXPECT(seen.address == ((uint64_t)poke.where & ~0xfffull), "a fault at %p, it is at %#lx", poke.where, seen.address);
        EXPECT(seen.reason & reason, "the fault's reason to have %#x, it is %#x", reason, seen.reason);
    }
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

// What the virtual GPU's log must say: kernel, instruction, wave.
static void check_log(const struct test *test, const char *text)
{
    const char *preload = getenv("LD_PRELOAD");
    if (!preload || !strstr(preload, "vgpu") || !test->log) return;
    char kernel[40];
    snprintf(kernel, sizeof kernel, "kernel %s ", test->kernel);
    const char *line = strstr(text, "vgpu[");
    EXPECT(line && strstr(line, kernel), "%s: the kernel's name in:\n%s", test->name, text);
    EXPECT(strstr(line, test->log), "%s: `%s` in:\n%s", test->name, test->log, text);
    EXPECT(strstr(line, is(test, "trap") ? "wave 1 of work-group [1, 0, 0]" : "wave 0 of work-group [0, 0, 0]"),
           "%s: the wave in:\n%s", test->name, text);
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2, "the path of a code object");
    if (argc > 2) return run(argv[1], &tests[atoi(argv[2])]);
    for (int i = 0; i < TESTS; i++) {
        const struct test *test = &tests[i];
        int pipe_[2];
        EXPECT(pipe(pipe_) == 0, "a pipe");
        pid_t pid = fork();
        if (pid == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", i);
            dup2(pipe_[1], STDERR_FILENO);
            if (test->kind == KILLED) dup2(pipe_[1], STDOUT_FILENO);
            close(pipe_[0]);
            close(pipe_[1]);
            execl("/proc/self/exe", argv[0], argv[1], number, (char *)NULL);
            _exit(127);
        }
        close(pipe_[1]);
        static char text[1 << 16];
        size_t len = 0;
        for (ssize_t n; len < sizeof text - 1 && (n = read(pipe_[0], text + len, sizeof text - 1 - len)) > 0;) {
            len += (size_t)n;
            text[len] = 0;
            if (test->kind == KILLED && strstr(text, "spinning")) {
                usleep(20000);
                kill(pid, SIGKILL);
            }
        }
        text[len] = 0;
        close(pipe_[0]);
        int status;
        waitpid(pid, &status, 0);
        if (test->kind == KILLED) {
            EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a kernel that never ends to die with its process; status %#x\n%s", status, text);
        } else if (test->kind == ABORT) {
            EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "SIGABRT; status %#x, stderr:\n%s", status, text);
            EXPECT(strstr(text, "Memory access fault by GPU node-1"), "ROCr's message in:\n%s", text);
            check_log(test, text);
        } else if (!(WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)) {
            EXPECT(status == 0, "%s: status %#x, stderr:\n%s", test->name, status, text);
            check_log(test, text);
        }
    }
    printf("faults: ok\n");
    return 0;
}
