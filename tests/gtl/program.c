/* An application of the stand-in: every reduction over 1 000 007 elements must equal the host's, bit for bit.
 *
 * usage: program RUNTIME_VERSION SMALLEST_DRIVER_VERSION
 */
#include "standin.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000007

static int failures;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) {                                                                                                  \
            printf("%s: %d (%s)\n", #call, error_, gtl_error(error_));                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf(__VA_ARGS__);                                                                                       \
            printf(" (%s)\n", #condition);                                                                             \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

static const char *operations[] = {"sum", "min", "max", "prod"}, *types[] = {"i32", "u64", "f32", "f64"};

static uint64_t state = 0x9e3779b97f4a7c15;
static uint64_t random64(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* One set of host functions per type. `fill` makes data whose sum and product are exact in any order: sums of floats are
 * sums of small integers, products have few factors other than 1 and -1. `fill_any` makes data that use all bits. */
#define TYPE(type, T, SUM, PROD, ANY, SMALL, FACTOR)                                                                   \
    static T apply_##type(int operation, T a, T b) {                                                                   \
        switch (operation) {                                                                                           \
        case GTL_SUM: return SUM;                                                                                      \
        case GTL_MIN: return b < a ? b : a;                                                                            \
        case GTL_MAX: return a < b ? b : a;                                                                            \
        default: return PROD;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void fill_##type(int operation, void *to, size_t count) {                                                   \
        T *x = to;                                                                                                     \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint64_t r = random64();                                                                                   \
            x[i] = operation == GTL_SUM ? SMALL : operation == GTL_PROD ? FACTOR : ANY;                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void fill_any_##type(void *to, size_t count) {                                                              \
        T *x = to;                                                                                                     \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint64_t r = random64();                                                                                   \
            x[i] = ANY;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void fold_##type(int operation, void *result, const void *in, size_t count) {                               \
        const T *x = in;                                                                                               \
        T all = x[0];                                                                                                  \
        for (size_t i = 1; i < count; i++) all = apply_##type(operation, all, x[i]);                                   \
        *(T *)result = all;                                                                                            \
    }                                                                                                                  \
    static void combine_##type(int operation, void *inout, const void *in, size_t count) {                             \
        for (size_t i = 0; i < count; i++)                                                                             \
            ((T *)inout)[i] = apply_##type(operation, ((T *)inout)[i], ((const T *)in)[i]);                            \
    }

/* Any float of moderate size, never 0 or -0, which compare equal but differ. */
#define FLOAT(r) (((double)(int64_t)(r >> 11) - 4503599627370495.5) * ((r & 1) ? 1e-12 : 3e-7))
#define FACTORS(r) ((i % 20011 == 5 ? 2.0 : i % 20011 == 9 ? 0.5 : 1.0) * (i % 250007 == 3 ? 3.0 : 1.0) * (r & 1 ? -1.0 : 1.0))

TYPE(i32, int32_t, (int32_t)((uint32_t)a + (uint32_t)b), (int32_t)((uint32_t)a * (uint32_t)b), (int32_t)r, (int32_t)r,
     (int32_t)(r | 1))
TYPE(u64, uint64_t, a + b, a *b, r, r, r | 1)
TYPE(f32, float, a + b, a *b, (float)FLOAT(r), (float)((int)(r % 33) - 16), (float)FACTORS(r))
TYPE(f64, double, a + b, a *b, FLOAT(r), (double)((int64_t)(r >> 24) - (1ll << 39)) * 0x1p-6, FACTORS(r))

static const struct {
    size_t size;
    void (*fill)(int, void *, size_t);
    void (*fill_any)(void *, size_t);
    void (*fold)(int, void *, const void *, size_t);
    void (*combine)(int, void *, const void *, size_t);
} host[GTL_TYPES] = {
    {4, fill_i32, fill_any_i32, fold_i32, combine_i32},
    {8, fill_u64, fill_any_u64, fold_u64, combine_u64},
    {4, fill_f32, fill_any_f32, fold_f32, combine_f32},
    {8, fill_f64, fill_any_f64, fold_f64, combine_f64},
};

static void reductions(void) {
    size_t most = COUNT * sizeof(double);
    char *a = malloc(most), *b = malloc(most), *c = malloc(most);
    void *da, *db;
    OK(cudaMalloc(&da, most));
    OK(cudaMalloc(&db, most));
    for (int type = 0; type < GTL_TYPES; type++) {
        size_t bytes = COUNT * host[type].size;
        for (int operation = 0; operation < GTL_OPERATIONS; operation++) {
            double expected = 0, found = 0;
            host[type].fill(operation, a, COUNT);
            OK(gtl_copy(da, a, bytes, type & 1));
            host[type].fold(operation, &expected, a, COUNT);
            OK(gtl_fold(operation, type, &found, da, COUNT));
            CHECK(memcmp(&expected, &found, host[type].size) == 0, "fold %s %s", operations[operation], types[type]);

            host[type].fill_any(a, COUNT);
            host[type].fill_any(b, COUNT);
            OK(gtl_copy(da, a, bytes, 0));
            OK(gtl_copy_registered(db, b, b, bytes));
            host[type].combine(operation, a, b, COUNT);
            OK(gtl_combine(operation, type, da, db, COUNT));
            memset(c, 0x5a, bytes);
            OK(gtl_copy(c, da, bytes, operation & 1));
            size_t wrong = 0;
            while (wrong < COUNT && !memcmp(a + wrong * host[type].size, c + wrong * host[type].size, host[type].size)) wrong++;
            CHECK(wrong == COUNT, "combine %s %s differs at element %zu", operations[operation], types[type], wrong);
        }
    }
    OK(cudaFree(da));
    OK(cudaFree(db));
    free(a);
    free(b);
    free(c);
}

/* What else a transport layer does: copies to a peer, stream-ordered flags, the device's place on the bus. */
static void transport(void) {
    int count = 0, possible = 0;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 2, "%d devices", count);
    char bus[32] = "", text[4096], back[4096] = "";
    OK(gtl_bus_id(bus, sizeof bus));
    CHECK(strlen(bus) == 12, "bus id %s", bus);

    CUcontext peer;
    OK(cuDevicePrimaryCtxRetain(&peer, 1));
    OK(gtl_enable_peer(1, peer, &possible));
    CHECK(possible == 1, "no peer access");
    void *here, *there;
    OK(cudaMalloc(&here, sizeof text));
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&there, sizeof text));
    OK(cudaSetDevice(0));
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)random64();
    OK(gtl_copy(here, text, sizeof text, 0));
    OK(gtl_copy(there, here, sizeof text, 0));
    OK(gtl_copy(back, there, sizeof text, 1));
    CHECK(memcmp(text, back, sizeof text) == 0, "a copy by way of the peer");

    unsigned long long flags[3] = {7, 9, 0};
    OK(gtl_copy(here, flags, sizeof flags, 0));
    /* Not every device has stream memory operations; a transport layer then goes without. */
    int error = gtl_triggered(here, 7);
    if (error == (int)cudaErrorNotSupported) {
        printf("stream-ordered flags: not supported\n");
    } else {
        OK(error);
        OK(gtl_copy(flags, here, sizeof flags, 0));
        CHECK(flags[2] == 7, "the stream wrote %llu", flags[2]);
    }
    OK(cudaFree(here));
    OK(cudaFree(there));
    OK(cuDevicePrimaryCtxRelease(1));
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int runtime = 0, driver = 0;
    OK(cudaRuntimeGetVersion(&runtime));
    OK(cudaDriverGetVersion(&driver));
    CHECK(runtime == atoi(argv[1]), "runtime %d", runtime);
    CHECK(driver >= atoi(argv[2]), "driver %d", driver);
    OK(gtl_init());
    reductions();
    transport();
    OK(gtl_finalize());
    if (failures) return 1;
    printf("32 reductions of %d elements equal the host's; runtime %d, driver %d\n", COUNT, runtime, driver);
    return 0;
}
