/* Opens libraries in the order given and checks that one libcuda.so.1 answers for all of them.
 *
 * usage: load_order LIBRARY...   (a path or a name; "cuda" and "cudart" in it tell which one it is)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(int argc, char **argv) {
    void *cuda = NULL, *cudart = NULL;
    for (int i = 1; i < argc; i++) {
        void *handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            return fail(dlerror());
        if (strstr(argv[i], "libcudart"))
            cudart = handle;
        else if (strstr(argv[i], "libcuda.so"))
            cuda = handle;
    }
    /* Whoever opened only one of them finds the other one by its name, as clients do. */
    if (!cuda)
        cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!cuda || !cudart)
        return fail("not both libraries are loaded");

    int (*entry_point)(const char *, void **, unsigned long long, int *) = dlsym(cudart, "cudaGetDriverEntryPoint");
    void *found = NULL;
    int status = -1;
    if (!entry_point || entry_point("cuInit", &found, 0, &status) || status)
        return fail("cudaGetDriverEntryPoint");
    if (found != dlsym(cuda, "cuInit"))
        return fail("libcudart.so.12 works with another libcuda.so.1 than the one that the program has");

    /* The last error is state: set by a call through one entry point, read by another. */
    int (*version)(int *) = dlsym(cudart, "cudaRuntimeGetVersion");
    int (*last)(void) = dlsym(cudart, "cudaGetLastError");
    if (version(NULL) != 1 || last() != 1 || last() != 0)
        return fail("the last error is not kept");

    char line[4096], first[4096] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (!path || !strstr(path, "libcuda.so"))
            continue;
        if (first[0] && strcmp(first, path))
            return fail("two different libcuda.so.1 are mapped");
        strcpy(first, path);
    }
    fclose(maps);
    puts("one state");
    return 0;
}
