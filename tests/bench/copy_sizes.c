/* Bytes per second of copies by size, beside memcpy between two host buffers of that size in the same run.
 * Prints NAME<tab>NANOSECONDS a copy, the median of many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int cudaMalloc(void **, size_t), cudaMallocHost(void **, size_t), cudaMemcpy(void *, const void *, size_t, int);
extern int cudaDeviceSynchronize(void);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum kind { HOST = 0, H2D = 1, D2H = 2, D2D = 3 };

static int once(enum kind kind, void *to, const void *from, size_t bytes) {
    if (kind == HOST) {
        memcpy(to, from, bytes);
        /* The copy must happen although nobody reads it. */
        __asm__ volatile("" : : "r"(to) : "memory");
        return 0;
    }
    int error = cudaMemcpy(to, from, bytes, kind);
    /* Device to device returns before the copy has ended. */
    return error ? error : kind == D2D ? cudaDeviceSynchronize() : 0;
}

int main(void) {
    static const size_t sizes[] = {4096, 65536, 1 << 20, 16 << 20};
    static const struct {
        const char *name;
        enum kind kind;
        int to, from;
    } copies[] = {{"memcpy host to host", HOST, 0, 1}, {"cudaMemcpy pinned to device", H2D, 2, 0},
                  {"cudaMemcpy device to pinned", D2H, 0, 2}, {"cudaMemcpy device to device", D2D, 3, 2}};
    void *buffer[4];
    size_t largest = 16 << 20;
    if (cudaMallocHost(&buffer[0], largest) || cudaMallocHost(&buffer[1], largest) || cudaMalloc(&buffer[2], largest) ||
        cudaMalloc(&buffer[3], largest)) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    memset(buffer[0], 1, largest);
    memset(buffer[1], 2, largest);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t c = 0; c < sizeof copies / sizeof *copies; c++) {
            double times[101];
            int runs = sizes[s] > (1 << 20) ? 11 : 101;
            for (int run = -2; run < runs; run++) {
                double start = now();
                int error = once(copies[c].kind, buffer[copies[c].to], buffer[copies[c].from], sizes[s]);
                if (error) {
                    fprintf(stderr, "%s: error %d\n", copies[c].name, error);
                    return 1;
                }
                if (run >= 0) times[run] = now() - start;
            }
            qsort(times, runs, sizeof *times, by_value);
            printf("%s, %zu KiB\t%.0f\n", copies[c].name, sizes[s] >> 10, times[runs / 2]);
        }
    return 0;
}
