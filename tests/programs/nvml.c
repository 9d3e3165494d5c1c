/* What UCX, NCCL and launchers ask of NVML, on a machine with two GPUs. Exits 1 at the first wrong answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *device;
extern int nvmlInit_v2(void), nvmlShutdown(void);
extern const char *nvmlErrorString(int);
extern int nvmlSystemGetDriverVersion(char *, unsigned), nvmlSystemGetCudaDriverVersion(int *);
extern int nvmlDeviceGetCount_v2(unsigned *), nvmlDeviceGetHandleByIndex_v2(unsigned, device *);
extern int nvmlDeviceGetHandleByPciBusId_v2(const char *, device *), nvmlDeviceGetHandleByUUID(const char *, device *);
extern int nvmlDeviceGetName(device, char *, unsigned), nvmlDeviceGetUUID(device, char *, unsigned);
extern int nvmlDeviceGetIndex(device, unsigned *), nvmlDeviceGetP2PStatus(device, device, unsigned, unsigned *);
extern int nvmlDeviceGetNvLinkState(device, unsigned, unsigned *);
extern int cudaGetDeviceCount(int *), cudaDeviceGetPCIBusId(char *, int, int);

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
extern int nvmlDeviceGetPciInfo_v3(device, struct pci *);
struct memory {
    unsigned long long total, free, used;
};
extern int nvmlDeviceGetMemoryInfo(device, struct memory *);
struct field {
    unsigned id, scope;
    long long time, latency;
    unsigned type, result;
    unsigned long long value;
};
extern int nvmlDeviceGetFieldValues(device, int, struct field *);

#define EXPECT(wanted, call)                                                                        \
    do {                                                                                            \
        int got = (call);                                                                           \
        if (got != (wanted)) {                                                                      \
            printf("line %d: %s is %d, not %d\n", __LINE__, #call, got, (wanted));                  \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

int main(void) {
    unsigned count = 0, number = 9;
    int version = 0, cuda_count = 0;
    char text[96], small[4];

    EXPECT(1, nvmlDeviceGetCount_v2(&count)); /* before nvmlInit */
    EXPECT(0, nvmlInit_v2());
    EXPECT(0, nvmlInit_v2());
    EXPECT(0, nvmlSystemGetDriverVersion(text, sizeof text));
    EXPECT(7, nvmlSystemGetDriverVersion(small, sizeof small));
    EXPECT(0, nvmlSystemGetCudaDriverVersion(&version));
    EXPECT(12090, version);
    EXPECT(0, nvmlDeviceGetCount_v2(&count));
    EXPECT(2, count);

    device devices[2];
    for (unsigned i = 0; i < count; i++) {
        device same = NULL;
        struct pci pci;
        struct memory memory;
        struct field fields[2] = {{.id = 90}, {.id = 91}};
        char uuid[96], bus_id[16];
        EXPECT(0, nvmlDeviceGetHandleByIndex_v2(i, &devices[i]));
        EXPECT(0, nvmlDeviceGetIndex(devices[i], &number));
        EXPECT(i, number);
        EXPECT(0, nvmlDeviceGetName(devices[i], text, sizeof text));
        EXPECT(0, strncmp(text, "AMD Instinct", 12));
        EXPECT(0, nvmlDeviceGetPciInfo_v3(devices[i], &pci));
        EXPECT(0x1002, pci.id & 0xffff);
        EXPECT(0, nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same));
        EXPECT(1, same == devices[i]);
        EXPECT(0, cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, i));
        EXPECT(0, nvmlDeviceGetHandleByPciBusId_v2(bus_id, &same)); /* CUDA's text names the same GPU */
        EXPECT(1, same == devices[i]);
        EXPECT(0, nvmlDeviceGetUUID(devices[i], uuid, sizeof uuid));
        EXPECT(40, (int)strlen(uuid));
        EXPECT(0, nvmlDeviceGetHandleByUUID(uuid, &same));
        EXPECT(1, same == devices[i]);
        EXPECT(0, nvmlDeviceGetMemoryInfo(devices[i], &memory));
        EXPECT(1, memory.total > 0 && memory.free <= memory.total && memory.used == memory.total - memory.free);
        EXPECT(3, nvmlDeviceGetNvLinkState(devices[i], 0, &number));
        EXPECT(0, nvmlDeviceGetFieldValues(devices[i], 2, fields));
        EXPECT(3, fields[0].result);
        EXPECT(3, fields[1].result);
    }
    EXPECT(0, nvmlDeviceGetP2PStatus(devices[0], devices[1], 0, &number));
    EXPECT(0, number);
    EXPECT(2, nvmlDeviceGetHandleByIndex_v2(2, &devices[0]));
    EXPECT(2, nvmlDeviceGetIndex(NULL, &number));
    EXPECT(6, nvmlDeviceGetHandleByPciBusId_v2("0000:ff:1f.7", &devices[0]));
    EXPECT(0, strcmp(nvmlErrorString(3), "Not Supported"));

    EXPECT(0, cudaGetDeviceCount(&cuda_count));
    EXPECT(2, cuda_count);
    EXPECT(0, nvmlShutdown());
    EXPECT(0, nvmlDeviceGetCount_v2(&count)); /* one user is left */
    EXPECT(0, nvmlShutdown());
    EXPECT(1, nvmlDeviceGetCount_v2(&count));
    EXPECT(1, nvmlShutdown());
    puts("two GPUs, told apart by index, PCI address and UUID");
    return 0;
}
