/* Prints the least microseconds that it takes to start and end a program, without and with a preloaded library.
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
    double plain = 1e9, preloaded = 1e9;
    char variable[4096], *with[] = {variable, NULL}, *without[] = {NULL};
    if (argc != 3)
        return 1;
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", argv[1]);
    /* In turns, and the least of many: what a busy machine adds is not the library's cost. */
    for (int i = 0; i < RUNS; i++) {
        double a = once(argv[2], without), b = once(argv[2], with);
        plain = a < plain ? a : plain;
        preloaded = b < preloaded ? b : preloaded;
    }
    printf("%.0f %.0f\n", plain, preloaded);
    return 0;
}
