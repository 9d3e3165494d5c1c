/* Asks for the private table that NVIDIA's runtime asks for, twice.
 *
 * usage: export_table LIBCUDA
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static const unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                         0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: export_table LIBCUDA");
        return 1;
    }
    int (*get)(const void **, const void *) = (int (*)(const void **, const void *))dlsym(library, "cuGetExportTable");
    const void *table = &table;
    int first = get(&table, id);
    printf("%d %d %d\n", first, get(&table, id), table == NULL);
    return 0;
}
