/* Calls CUDA after exit() has begun: destructors of other libraries do that.
 *
 * usage: late_calls LIBCUDART
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static int call(const char *name, void *argument) {
    int (*function)(void *) = (int (*)(void *))dlsym(library, name);
    return function(argument);
}

/* Registered before the first CUDA call, so it runs after the library's own exit handler. */
static void late(void) {
    void *pointer = NULL;
    int version = 0;
    printf("cudaFree %d\n", call("cudaFree", &pointer));
    printf("cudaEventDestroy %d\n", call("cudaEventDestroy", &pointer));
    printf("cudaMalloc %d\n", call("cudaMalloc", &pointer));
    printf("cudaDeviceSynchronize %d\n", call("cudaDeviceSynchronize", NULL));
    printf("cudaRuntimeGetVersion %d\n", call("cudaRuntimeGetVersion", &version));
}

int main(int argc, char **argv) {
    if (argc != 2 || !(library = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: late_calls LIBCUDART");
        return 1;
    }
    atexit(late);
    int version = 0;
    return call("cudaRuntimeGetVersion", &version);
}
