/* Which GPUs a process sees, in which order, by the variables of CUDA, ROCr, HIP and Slurm together; and that each is the GPU it says: memory of each
   holds its own data, primary contexts live and end one by one. Every case is a process of its own.

   usage: visibility            the parent: makes the environments and compares
          visibility look       prints the identifiers of what it sees, or the error of cuInit, after it has tried every GPU */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "check.h"

enum { MOST = 16, WORDS = 4096 };

static void state(CUdevice device, int wanted) {
    unsigned flags;
    int active = -1;
    OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
    if (active != wanted) DIE("the primary context of device %d is %d, not %d", device, active, wanted);
}

static uint32_t word(int device, int i, int round) { return (uint32_t)(device * 1000003 + i * 31 + round * 77); }

/* All GPUs hold data at once; then the contexts end in another order than they began. */
static void use_all(int count) {
    static CUcontext context[MOST], again;
    static CUdeviceptr memory[MOST];
    static uint32_t data[WORDS];
    for (int round = 0; round < 2; round++) {
        for (int d = 0; d < count; d++) {
            state(d, 0);
            OK(cuDevicePrimaryCtxRetain(&context[d], d));
            OK(cuCtxSetCurrent(context[d]));
            state(d, 1);
            OK(cuMemAlloc(&memory[d], sizeof data));
            for (int i = 0; i < WORDS; i++) data[i] = word(d, i, round);
            OK(cuMemcpyHtoD(memory[d], data, sizeof data));
        }
        for (int d = 0; d < count; d++) {
            CUdevice owner = -1;
            int ordinal = -1;
            OK(cuCtxSetCurrent(context[d]));
            OK(cuCtxGetDevice(&owner));
            OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[d]));
            if (owner != d || ordinal != d) DIE("device %d is %d and its memory %d's", d, owner, ordinal);
            OK(cuMemcpyDtoH(data, memory[d], sizeof data));
            for (int i = 0; i < WORDS; i++)
                if (data[i] != word(d, i, round)) DIE("word %d of device %d is %#x", i, d, data[i]);
        }
        for (int i = 0; i < count; i++) {
            int d = (i + 1) % count;
            /* Held twice: ends with the second release, or at once by a reset. */
            OK(cuDevicePrimaryCtxRetain(&again, d));
            if (again != context[d]) DIE("device %d has two primary contexts", d);
            if (round == 0) {
                OK(cuDevicePrimaryCtxRelease(d));
                state(d, 1);
                OK(cuDevicePrimaryCtxRelease(d));
            } else {
                OK(cuDevicePrimaryCtxReset(d));
            }
            state(d, 0);
            CUdeviceptr base;
            size_t size;
            if (cuMemGetAddressRange(&base, &size, memory[d]) == CUDA_SUCCESS) DIE("memory of device %d outlives its context", d);
        }
        if (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS && round == 0) DIE("a context is released more often than it was retained");
        OK(cuCtxSetCurrent(NULL));
    }
}

static int look(void) {
    int count = -1;
    CUresult error = cuInit(0);
    if (error) {
        printf("error %d\n", error);
        return 0;
    }
    OK(cuDeviceGetCount(&count));
    for (int d = 0; d < count; d++) {
        CUuuid uuid;
        OK(cuDeviceGetUuid(&uuid, d));
        for (int i = 0; i < 16; i++) printf("%02x", (unsigned char)uuid.bytes[i]);
        putchar('\n');
    }
    CUdevice beyond;
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&beyond, count));
    fflush(stdout);
    use_all(count);
    return 0;
}

/* Runs `visibility look` in an environment; what it printed. */
static const char *names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                              "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_LOCALID"};
enum { NAMES = sizeof names / sizeof *names };

static void run_look(const char *const values[NAMES], char *text, size_t room) {
    int ends[2], status;
    if (pipe(ends)) DIE("no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]), close(ends[1]);
        for (int i = 0; i < NAMES; i++) {
            unsetenv(names[i]);
            if (values[i]) setenv(names[i], values[i], 1);
        }
        alarm(60);
        execl("/proc/self/exe", "visibility", "look", (char *)NULL);
        _exit(9);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; length < room - 1 && (n = read(ends[0], text + length, room - 1 - length)) > 0;) length += (size_t)n;
    text[length] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (status) DIE("CUDA %s, ROCr %s: ended with %#x and said\n%s", values[0] ? values[0] : "-", values[1] ? values[1] : "-", status, text);
}

static char uuid[MOST][40];
static int all;

/* `{N}` is GPU N's UUID as CUDA writes it, `{N-}` its first half, `{rN}` that as ROCr writes it. */
static const char *filled(const char *pattern, char *room) {
    char *to = room;
    if (!pattern) return NULL;
    while (*pattern) {
        if (*pattern != '{') {
            *to++ = *pattern++;
            continue;
        }
        int rocr = pattern[1] == 'r';
        const char *id = uuid[atoi(pattern + 1 + rocr)];
        if (rocr) to += sprintf(to, "GPU-%.16s", id);
        else if (pattern[2] == '-') to += sprintf(to, "GPU-%.8s-%.4s-%.4s", id, id + 8, id + 12);
        else to += sprintf(to, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
        pattern = strchr(pattern, '}') + 1;
    }
    *to = 0;
    return room;
}

/* `wanted`: a digit for each GPU of the node that is seen, in order; "all"; or "error N". */
static int cases;
static void expect(const char *wanted, const char *const patterns[NAMES]) {
    static char rooms[NAMES][512], text[4096], right[4096];
    const char *values[NAMES];
    for (int i = 0; i < NAMES; i++) values[i] = filled(patterns[i], rooms[i]);
    run_look(values, text, sizeof text);
    right[0] = 0;
    if (!strncmp(wanted, "error", 5)) sprintf(right, "%s\n", wanted);
    else if (!strcmp(wanted, "all"))
        for (int i = 0; i < all; i++) strcat(strcat(right, uuid[i]), "\n");
    else
        for (const char *digit = wanted; *digit; digit++) strcat(strcat(right, uuid[*digit - '0']), "\n");
    if (strcmp(text, right)) {
        printf("wrong with");
        for (int i = 0; i < NAMES; i++)
            if (values[i]) printf(" %s=%s", names[i], values[i]);
        DIE("\nfound\n%swanted\n%s", text, right);
    }
    cases++;
}
#define EXPECT(wanted, ...) expect(wanted, (const char *const[NAMES]){__VA_ARGS__})

int main(int argc, char **argv) {
    static char text[4096];
    if (argc > 1) return strcmp(argv[1], "look") ? 2 : look();
    run_look((const char *const[NAMES]){0}, text, sizeof text);
    for (char *line = strtok(text, "\n"); line && all < MOST; line = strtok(NULL, "\n")) {
        if (strlen(line) != 32) DIE("%s", line);
        strcpy(uuid[all++], line);
        for (int i = 0; i < all - 1; i++)
            if (!strcmp(uuid[i], line)) DIE("two GPUs have the UUID %s", line);
    }
    if (all < 2) DIE("%d GPUs are too few", all);

    /* CUDA's variable alone, as recorded on two H200. */
    EXPECT("0", "0");
    EXPECT("1", "1");
    EXPECT("01", "0,1");
    EXPECT("10", "1,0");
    EXPECT("0", "0,-1");
    EXPECT("1", "1,-1,0");
    EXPECT("0", "0,99,1");
    EXPECT("1", "0x1");
    EXPECT("0", "0,{1}");
    EXPECT("1", "{1},0");
    EXPECT("1", "{1}");
    EXPECT("1", "{1-}");
    EXPECT("1", "{r1}");
    EXPECT("10", "{1},{0}");
    EXPECT("error 100", "");
    EXPECT("error 100", "-1");
    EXPECT("error 100", "99,0");
    EXPECT("error 100", "none");
    EXPECT("error 100", "GPU-");
    EXPECT("error 100", "GPU-00000000-0000-0000-0000-000000000000");
    EXPECT("error 100", "MIG-GPU-00000000-0000-0000-0000-000000000000/0/0");
    EXPECT("error 100", "MIG-11111111-2222-3333-4444-555555555555");
    EXPECT("error 101", "0,0");
    EXPECT("error 101", "{1},{1}");

    /* ROCr's alone, which ROCr itself applies. */
    EXPECT("1", NULL, "1");
    EXPECT("10", NULL, "1,0");
    EXPECT("1", NULL, "{r1}");
    EXPECT("10", NULL, "{r1},{r0}");

    /* Both, as Slurm sets them: the same list selects once. */
    EXPECT("0", "0", "0");
    EXPECT("1", "1", "1");
    EXPECT("10", "1,0", "1,0");
    EXPECT("1", "{r1}", "{r1}");
    /* A list of CUDA's that numbers what ROCr left, and one that numbers the node's. */
    EXPECT("1", "0", "1");
    EXPECT("0", "1", "1,0");
    EXPECT("1", "{1}", "0,1");
    EXPECT("error 100", "{1}", "0");
    EXPECT("error 100", "", "1");

    /* HIP's variables number what ROCr left, for HIP; Slurm sets GPU_DEVICE_ORDINAL beside the others. They are not CUDA's. */
    EXPECT("1", "1", "1", "0", "0");
    EXPECT("1", "1", NULL, "0", "0");
    EXPECT("all", NULL, NULL, "1", "1");
    EXPECT("1", "1", "1", NULL, "1", "1", "0,1", "1");
    EXPECT("0", "0", "0", NULL, "0", "0", "0,1", "3");

    if (all >= 8) {
        EXPECT("7", "7");
        EXPECT("7654", "7,6,5,4");
        EXPECT("23", "2,3", "2,3");
        EXPECT("7", "7", "7");
        EXPECT("46", "4,6", "4,5,6,7");
        EXPECT("5", "1", "4,5,6,7");
        EXPECT("635", "{6},{3},{5}");
        EXPECT("76543210", "7,6,5,4,3,2,1,0", NULL);
    }
    printf("%d environments over %d GPUs select what they should\n", cases, all);
    return 0;
}
