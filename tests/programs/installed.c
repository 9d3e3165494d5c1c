/* Built and run from an unpacked archive: copies data through a GPU with both APIs and says which libraries did it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int cudaGetDeviceCount(int *), cudaMalloc(void **, size_t), cudaFree(void *), cudaMemcpy(void *, const void *, size_t, int);
extern int cuDriverGetVersion(int *), cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
extern int nvmlInit_v2(void), nvmlDeviceGetCount_v2(unsigned *);

#define MUST(call)                                                                                  \
    do {                                                                                            \
        int error = (call);                                                                         \
        if (error) {                                                                                \
            printf("line %d: %s: error %d\n", __LINE__, #call, error);                              \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

int main(void) {
    enum { COUNT = 1000007 };
    int devices, version;
    unsigned nvml_devices;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cuDriverGetVersion(&version));
    MUST(nvmlInit_v2());
    MUST(nvmlDeviceGetCount_v2(&nvml_devices));
    unsigned *there = malloc(COUNT * sizeof *there), *back = calloc(COUNT, sizeof *back);
    for (unsigned i = 0; i < COUNT; i++) there[i] = i * 2654435761u;
    void *memory;
    MUST(cudaMalloc(&memory, COUNT * sizeof *there));
    MUST(cudaMemcpy(memory, there, COUNT * sizeof *there, 1));
    MUST(cuMemcpyDtoH_v2(back, (unsigned long long)memory, COUNT * sizeof *there));
    if (memcmp(there, back, COUNT * sizeof *there)) {
        puts("what came back is not what went there");
        return 1;
    }
    MUST(cudaFree(memory));
    printf("%d devices, NVML %u, driver %d\n", devices, nvml_devices, version);
    char line[4096], last[4096] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (path && strcmp(path, last)) printf("mapped %s", strcpy(last, path));
    }
    return 0;
}
