/* Runs kernels that keep the virtual GPU's interpreter busy: NAME LAUNCHES. Prints NAME<tab>NANOSECONDS for all launches but the
 * first, which also translates. The harness reads the number of wave instructions from the GPU's own counters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(unsigned long long *, size_t), cuCtxSynchronize(void);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    /* arithmetic in registers: 256 rounds of four dependent fused multiply-adds */
    ".visible .entry arithmetic(.param .u64 p) {\n"
    " .reg .u64 %d<4>; .reg .u32 %r<4>; .reg .f32 %f<8>; .reg .pred %q;\n"
    " ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; cvt.rn.f32.u32 %f0, %r0; mov.u32 %r1, 0; mov.f32 %f1, 0f3F800001;\n"
    "loop: fma.rn.f32 %f0, %f0, %f1, %f1; fma.rn.f32 %f2, %f0, %f1, %f0; fma.rn.f32 %f3, %f2, %f1, %f0;\n"
    " fma.rn.f32 %f0, %f3, %f1, %f2; add.u32 %r1, %r1, 1; setp.lt.u32 %q, %r1, 256; @%q bra loop;\n"
    " mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; st.global.f32 [%d0], %f0; ret;\n}\n"
    /* memory: 64 rounds of a load, an addition and a store of 4 bytes a lane */
    ".visible .entry memory(.param .u64 p) {\n"
    " .reg .u64 %d<4>; .reg .u32 %r<6>; .reg .pred %q;\n"
    " ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; mov.u32 %r1, 0;\n"
    "loop: ld.volatile.global.u32 %r2, [%d0]; add.u32 %r2, %r2, %r1; st.volatile.global.u32 [%d0], %r2;\n"
    " add.u32 %r1, %r1, 1; setp.lt.u32 %q, %r1, 64; @%q bra loop; ret;\n}\n"
    /* shared memory and barriers: 64 rounds of a store, a barrier, a neighbour's load, a barrier */
    ".visible .entry shared(.param .u64 p) {\n"
    " .reg .u64 %d<4>; .reg .u32 %r<8>; .reg .pred %q; .shared .align 4 .b8 area[1024];\n"
    " ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, %r0; mov.u32 %r5, area;\n"
    " shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r5; xor.b32 %r4, %r0, 65; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r5;\n"
    "loop: st.shared.u32 [%r3], %r2; bar.sync 0; ld.shared.u32 %r2, [%r4]; bar.sync 0;\n"
    " add.u32 %r1, %r1, 1; setp.lt.u32 %q, %r1, 64; @%q bra loop;\n"
    " mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; ret;\n}\n";

#define MUST(call)                                                                                  \
    do {                                                                                            \
        int error = (call);                                                                         \
        if (error) {                                                                                \
            fprintf(stderr, "%s: error %d\n", #call, error);                                        \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

int main(int argc, char **argv) {
    void *context, *module, *function;
    unsigned long long memory;
    int device;
    if (argc != 3) return 2;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&function, module, argv[1]));
    MUST(cuMemAlloc_v2(&memory, 4096));
    void *parameters[] = {&memory};
    struct timespec start = {0}, end;
    for (int launch = 0; launch < atoi(argv[2]); launch++) {
        if (launch == 1) clock_gettime(CLOCK_MONOTONIC, &start);
        MUST(cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
        MUST(cuCtxSynchronize());
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s\t%.0f\n", argv[1], (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec));
    return 0;
}
