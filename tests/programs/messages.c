/* Fails as users' programs do, one way an argument; what is printed then is quoted in docs/troubleshooting.md.
 *
 * usage: messages count | kernel | fault | call NAME     (exit status 0: it failed as it should)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *), cuCtxSynchronize(void);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cudaGetDeviceCount(int *);

#define HEAD ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry bad(.param .u64 where)\n{\n.reg .u64 %rd<2>;\n"
/* No GPU of AMD's has this one. */
static const char untranslatable[] = HEAD "wgmma.fence.sync.aligned;\nret;\n}\n";
static const char stray[] = HEAD "ld.param.u64 %rd1, [where];\nst.global.u64 [%rd1], %rd1;\nret;\n}\n";

/* The first error of loading, launching and waiting. */
static int run(const char *ptx) {
    void *context, *module, *kernel;
    int device, error;
    unsigned long long where = 0x123456789000;
    void *arguments[] = {&where};
    if ((error = cuInit(0)) || (error = cuDeviceGet(&device, 0)) || (error = cuDevicePrimaryCtxRetain(&context, device)) ||
        (error = cuCtxSetCurrent(context))) {
        printf("no context: error %d\n", error);
        return 0;
    }
    if ((error = cuModuleLoadData(&module, ptx)) || (error = cuModuleGetFunction(&kernel, module, "bad"))) return error;
    if ((error = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0))) return error;
    return cuCtxSynchronize();
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int error = 0, count = -1;
    if (!strcmp(how, "count")) {
        error = cudaGetDeviceCount(&count);
        printf("error %d\n", error);
        return !error;
    }
    if (!strcmp(how, "kernel")) {
        error = run(untranslatable);
        printf("error %d\n", error);
        return !error;
    }
    if (!strcmp(how, "fault")) {
        error = run(stray);
        printf("error %d\n", error);
        return error != 700;
    }
    if (!strcmp(how, "call") && argc > 2) {
        int (*call)(void *, void *, void *, void *, void *, void *) =
            (int (*)(void *, void *, void *, void *, void *, void *))dlsym(RTLD_DEFAULT, argv[2]);
        if (!call) return 1;
        error = call(0, 0, 0, 0, 0, 0);
        printf("error %d\n", error);
        return error != 801;
    }
    return 2;
}
