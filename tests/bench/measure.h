/* Medians of repeated batches. Each result is a line: NAME<tab>NANOSECONDS<tab>the H200's name for the same, or 801 where the call is not there.
 * A fourth field, "times", says that the second is a ratio. */
#pragma once

#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* WALL where the device's answer is waited for; CPU (this thread's own time) for what a call costs its caller, whatever else runs. */
enum clock { WALL = CLOCK_MONOTONIC, CPU = CLOCK_THREAD_CPUTIME_ID };

static inline double now(enum clock clock)
{
    struct timespec t;
    clock_gettime((clockid_t)clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static inline void result(const char *name, int error, double ns, const char *h200)
{
    if (error) printf("%s\t%d\t%s\n", name, error == 801 ? 801 : -error, h200);
    else printf("%s\t%.2f\t%s\n", name, ns, h200);
    fflush(stdout);
}

/* How many times `base` nanoseconds `ns` are. */
static inline void ratio(const char *name, double ns, double base)
{
    if (ns > 0 && base > 0) printf("%s\t%.3f\t\ttimes\n", name, ns / base);
    fflush(stdout);
}

/* Set where nothing but the main thread is measured. */
static bool apart;

/* Gives the main thread a processor of its own, and the others to all other threads: those of the virtual GPU and of the runtimes.
 * A real device shares no processor with the thread that waits for it; here whether they do would be a throw of the scheduler's dice at
 * each run, and decide the result. Threads that come later start on the caller's processor, hence once per measurement. */
static inline void keep_apart(void)
{
    static cpu_set_t all;
    if (!apart) return;
    if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof all, &all)) return;
    if (CPU_COUNT(&all) < 2) return;
    cpu_set_t own, others = all;
    CPU_ZERO(&own);
    int first = 0;
    while (!CPU_ISSET(first, &all)) first++;
    CPU_SET(first, &own);
    CPU_CLR(first, &others);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        pid_t thread = atoi(task->d_name);
        if (thread) sched_setaffinity(thread, sizeof own, thread == getpid() ? &own : &others);
    }
    if (tasks) closedir(tasks);
}

/* The time of one of `batch` evaluations of `call`, an expression that is an error code, over `samples` batches; `between` is evaluated
 * untimed after each. The first batch warms up. Of a thread's own time the median; of the clock's the lower decile, since on a machine that
 * also has other things to do the rest says how long the virtual GPU's threads waited for a core. */
#define MEASURE_BETWEEN(clock, name, h200, samples, batch, between, call)        \
    do {                                                                         \
        double times_[samples];                                                  \
        int error_ = 0;                                                          \
        for (int sample_ = -1; sample_ < (samples) && !error_; sample_++) {      \
            double start_ = now(clock);                                          \
            for (int i = 0; i < (batch); i++) error_ |= (int)(call);             \
            double ns_ = (now(clock) - start_) / (batch);                        \
            if (sample_ >= 0) times_[sample_] = ns_;                             \
            else keep_apart();                                                   \
            between;                                                             \
        }                                                                        \
        if (!error_) qsort(times_, samples, sizeof *times_, by_value);           \
        result(name, error_, error_ ? 0 : times_[(samples) / ((clock) == CPU ? 2 : 10)], h200); \
    } while (0)
#define MEASURE(clock, name, h200, samples, batch, call) MEASURE_BETWEEN(clock, name, h200, samples, batch, (void)0, call)

#define MUST(call)                                                                        \
    do {                                                                                  \
        int error_ = (int)(call);                                                         \
        if (error_) {                                                                     \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, error_);  \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}
