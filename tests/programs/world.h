/* What the multi-process test programs share: ranks forked before any GPU call, a shared page and barriers in MPI's place, and
   the driver's functions, opened by name as MPI layers do. A rank that hangs is ended by its alarm, and one that fails ends the others;
   ranks leave by exit(), so that teardown is part of the test. */
#ifndef WORLD_H
#define WORLD_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#define MOST_RANKS 16

static int me = -1, ranks = 2;

#define SAYS "rank %d, line %d: ", me, __LINE__
#include "check.h"

/* Shared by all ranks: the barrier, and what the program wants to share (`board`). */
struct world {
    int arrived[2], sense;
    int failed;
    unsigned char board[1 << 20] __attribute__((aligned(64)));
};
static struct world *world;

/* A barrier that ends when a rank has failed. */
static __attribute__((unused)) void barrier(void) {
    static int sense = 0;
    sense = !sense;
    if (__atomic_add_fetch(&world->arrived[sense], 1, __ATOMIC_ACQ_REL) == ranks) {
        __atomic_store_n(&world->arrived[sense], 0, __ATOMIC_RELEASE);
        __atomic_store_n(&world->sense, sense, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&world->sense, __ATOMIC_ACQUIRE) != sense) {
            if (__atomic_load_n(&world->failed, __ATOMIC_ACQUIRE)) _exit(1);
            usleep(100);
        }
    }
}

/* Says every five seconds how far rank 0 is and how fast it was since the last time: long runs show whether they are slow or hang. */
static __attribute__((unused)) void progress(const char *what, long done, long all) {
    static double last_time;
    static long last_done;
    struct timespec time;
    if (me != 0) return;
    clock_gettime(CLOCK_MONOTONIC, &time);
    double now = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
    if (last_time == 0 || done < last_done) last_time = now, last_done = done;
    if (now - last_time < 5) return;
    printf("progress: %s %ld", what, done);
    if (all) printf(" of %ld", all);
    printf(", %.1f a second\n", (double)(done - last_done) / (now - last_time));
    fflush(stdout);
    last_time = now, last_done = done;
}

/* Descriptors that this process has open, and three more, the same each time. */
static __attribute__((unused)) int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static CUdevice device;
static CUcontext context;
static int devices;

/* A primary context on device `me % devices`. */
static __attribute__((unused)) void use_device(void) {
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    OK(cuDeviceGet(&device, me % devices));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
}

/* Runs `body` in every rank for at most `seconds`; the exit status of the program. A rank that fails may leave others waiting for what
   only it would do, in calls that see no barrier: they get a second to say what they have to say. */
static __attribute__((unused)) int run_ranks(void (*body)(void), unsigned seconds) {
    int status, failed = 0, patience = 100;
    pid_t children[MOST_RANKS], child;
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world == MAP_FAILED || ranks < 1 || ranks > MOST_RANKS) return 2;
    fflush(NULL);
    for (int rank = 0; rank < ranks; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) {
            me = rank;
            alarm(seconds);
            body();
            fflush(NULL);
            exit(0);
        }
    }
    for (int left = ranks; left > 0;) {
        if ((child = waitpid(-1, &status, failed ? WNOHANG : 0)) < 0) break;
        if (child == 0) {
            for (int rank = 0; patience == 0 && rank < ranks; rank++)
                if (children[rank]) kill(children[rank], SIGKILL);
            if (patience-- > 0) usleep(10000);
            else waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT);
            continue;
        }
        for (int rank = 0; rank < ranks; rank++) {
            if (children[rank] != child) continue;
            children[rank] = 0, left--;
            if (WIFSIGNALED(status)) fprintf(stderr, "rank %d: signal %d\n", rank, WTERMSIG(status));
            else if (status) fprintf(stderr, "rank %d: exit status %d\n", rank, WEXITSTATUS(status));
        }
        if (status == 0) continue;
        failed = 1;
        __atomic_store_n(&world->failed, 1, __ATOMIC_RELEASE);
    }
    return failed;
}
#endif
