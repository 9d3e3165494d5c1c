/* Prints the median microseconds that it takes to start and end a program, without and with a preloaded library.
 *
 * usage: spawn_cost LIBRARY PROGRAM
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS 200

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double once(char *program, char **environment) {
    struct timespec begin, end;
    char *arguments[] = {program, NULL};
    pid_t child;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (posix_spawn(&child, program, NULL, NULL, arguments, environment) || waitpid(child, &status, 0) != child || status)
        exit(1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - begin.tv_sec) * 1e6 + (end.tv_nsec - begin.tv_nsec) / 1e3;
}

int main(int argc, char **argv) {
    static double plain[RUNS], preloaded[RUNS];
    char variable[4096], *with[] = {variable, NULL}, *without[] = {NULL};
    if (argc != 3)
        return 1;
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", argv[1]);
    /* In turns, so that a busy machine is busy for both. */
    for (int i = 0; i < RUNS; i++) {
        plain[i] = once(argv[2], without);
        preloaded[i] = once(argv[2], with);
    }
    qsort(plain, RUNS, sizeof *plain, compare);
    qsort(preloaded, RUNS, sizeof *preloaded, compare);
    printf("%.0f %.0f\n", plain[RUNS / 2], preloaded[RUNS / 2]);
    return 0;
}
