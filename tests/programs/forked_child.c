/* Forked children of a process that uses CUDA: told that CUDA does not work there, never hung; exec works; the parent goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern int cuInit(unsigned), cuDeviceGetCount(int *), cuMemAlloc_v2(unsigned long long *, size_t);
extern int cudaGetDeviceCount(int *), cudaGetDevice(int *), cudaMalloc(void **, size_t), cudaFree(void *);
extern int cudaHostAlloc(void **, size_t, unsigned), cudaFreeHost(void *), cudaMemcpy(void *, const void *, size_t, int);
extern int cudaHostRegister(void *, size_t, unsigned), cudaHostUnregister(void *);
extern int cudaSetDevice(int), cudaDeviceSynchronize(void), cudaGetLastError(void), cudaDriverGetVersion(int *);

#define EXPECT(wanted, call)                                                                        \
    do {                                                                                            \
        int got = (call);                                                                           \
        if (got != (wanted)) {                                                                      \
            printf("line %d: %s is %d, not %d\n", __LINE__, #call, got, (wanted));                  \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

/* Runs `child` in a forked child and waits for its success; a child that hangs is killed by its alarm. */
static void in_child(void (*child)(void *), void *argument) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        child(argument);
        exit(0);
    }
    waitpid(pid, &status, 0);
    if (status) {
        printf("a child ended with status %#x\n", status);
        exit(1);
    }
}

static void uninitialised(void *unused) {
    int count = 0;
    (void)unused;
    EXPECT(0, cudaGetDeviceCount(&count));
    EXPECT(1, count);
}

static void initialised(void *memory) {
    int number = 0;
    void *pointer = NULL;
    unsigned long long address;
    EXPECT(0, cudaGetDeviceCount(&number)); /* the parent has asked */
    EXPECT(1, number);
    EXPECT(3, cudaGetDevice(&number));
    EXPECT(3, cudaMalloc(&pointer, 64));
    EXPECT(3, cudaGetLastError());
    EXPECT(0, cudaGetLastError());
    EXPECT(3, cudaFree(memory));
    EXPECT(3, cudaSetDevice(0));
    EXPECT(3, cudaDeviceSynchronize());
    EXPECT(3, cuInit(0));
    EXPECT(3, cuDeviceGetCount(&number));
    EXPECT(3, cuMemAlloc_v2(&address, 4));
    EXPECT(0, cudaDriverGetVersion(&number));
}

enum { PINNED = 5 << 20 };

/* Pinned memory is the parent's and the child's (recorded). */
static void shares(void *memory) {
    char *pinned = memory;
    for (size_t i = 0; i < PINNED; i++) {
        if (pinned[i] != (char)(i / 4096)) exit(2);
        pinned[i] = (char)(i / 4096 + 1);
    }
}

/* Registered memory is as any of the parent's: the child has a copy. */
static void has_a_copy(void *memory) {
    char *registered = memory;
    for (size_t i = 0; i < PINNED; i++) {
        if (registered[i] != (char)(i / 4096)) exit(2);
        registered[i] = 0;
    }
}

/* The child's stores reach the parent, and what the GPU is told of the parent's memory stays true. */
static void memory_after_fork(void) {
    char *pinned, *registered = aligned_alloc(4096, PINNED);
    void *device;
    EXPECT(0, cudaHostAlloc((void **)&pinned, PINNED, 0));
    EXPECT(0, cudaHostRegister(registered, PINNED, 0));
    EXPECT(0, cudaMalloc(&device, PINNED));
    for (size_t i = 0; i < PINNED; i++) pinned[i] = registered[i] = (char)(i / 4096);
    in_child(shares, pinned);
    in_child(has_a_copy, registered);
    for (size_t i = 0; i < PINNED; i++) registered[i]++;
    for (char *from = pinned, *to = registered;; from = registered, to = pinned) {
        EXPECT(0, cudaMemcpy(device, from, PINNED, 1));
        memset(to, 0, PINNED);
        EXPECT(0, cudaMemcpy(to, device, PINNED, 2));
        for (size_t i = 0; i < PINNED; i++) EXPECT((char)(i / 4096 + 1), to[i]);
        if (from == registered) break;
    }
    EXPECT(0, cudaFree(device));
    EXPECT(0, cudaHostUnregister(registered));
    EXPECT(0, cudaFreeHost(pinned));
    free(registered);
}

/* A pinned block that comes after a freed one of its size is new to everybody: to the GPU, and to a child that still sees the other. */
static void blocks_come_and_go(void) {
    enum { ROUNDS = 8, SIZES = 2 };
    static const size_t sizes[SIZES] = {4096, 1 << 20};
    void *device;
    EXPECT(0, cudaMalloc(&device, sizes[SIZES - 1]));
    for (int s = 0; s < SIZES; s++) {
        int hold[2], status = 0;
        pid_t child = 0;
        if (pipe(hold)) exit(1);
        for (char round = 1; round <= ROUNDS; round++) {
            char *pinned;
            EXPECT(0, cudaHostAlloc((void **)&pinned, sizes[s], 0));
            for (size_t i = 0; i < sizes[s]; i++) EXPECT(0, pinned[i]);
            memset(pinned, round, sizes[s]);
            EXPECT(0, cudaMemcpy(device, pinned, sizes[s], 1));
            memset(pinned, 0, sizes[s]);
            EXPECT(0, cudaMemcpy(pinned, device, sizes[s], 2));
            for (size_t i = 0; i < sizes[s]; i++) EXPECT(round, pinned[i]);
            if (round == ROUNDS / 2 && (child = fork()) == 0) {
                alarm(20);
                close(hold[1]);
                if (read(hold[0], &status, 1) != 0) _exit(2);
                for (size_t i = 0; i < sizes[s]; i++) {
                    if (pinned[i] != round) _exit(3);
                    pinned[i] = 99;
                }
                _exit(0);
            }
            EXPECT(0, cudaFreeHost(pinned));
        }
        /* The child looks when its block's successors have come, and stores while one is there. */
        char *last;
        EXPECT(0, cudaHostAlloc((void **)&last, sizes[s], 0));
        close(hold[0]);
        close(hold[1]);
        waitpid(child, &status, 0);
        EXPECT(0, status);
        for (size_t i = 0; i < sizes[s]; i++) EXPECT(0, last[i]);
        EXPECT(0, cudaFreeHost(last));
    }
    EXPECT(0, cudaFree(device));
}

static void executes(void *program) {
    execl(program, program, "again", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv) {
    int count = 0;
    void *memory = NULL;
    if (argc > 1) {
        EXPECT(0, cudaMalloc(&memory, 64));
        EXPECT(0, cudaFree(memory));
        return 0;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    in_child(uninitialised, NULL); /* fork before the first use is harmless */
    EXPECT(0, cudaGetDeviceCount(&count));
    EXPECT(0, cudaMalloc(&memory, 64));
    in_child(initialised, memory);
    in_child(executes, "/proc/self/exe");
    memory_after_fork();
    blocks_come_and_go();
    EXPECT(0, cudaFree(memory));
    EXPECT(0, cudaDeviceSynchronize());
    puts("children fail cleanly, exec and the parent work");
    return 0;
}
