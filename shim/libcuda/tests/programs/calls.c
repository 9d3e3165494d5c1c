/* Calls functions that take one pointer to an int, in order, and prints each result.
 *
 * usage: calls LIBRARY FUNCTION...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: calls LIBRARY FUNCTION...");
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        int value = 0;
        int (*function)(int *) = (int (*)(int *))dlsym(library, argv[i]);
        if (!function) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        printf("%s %d\n", argv[i], function(&value));
    }
    return 0;
}
