// What the HIP test programs share. Each program is built twice: by clang for the GPU, and by g++ for the CPU alone, where host/ runs
// kernels and streams in program order. Both print what they computed, and the outputs must be the same.
#pragma once

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#else
#include "host/hip.h"
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                             \
    do {                                                                                                        \
        hipError_t error_ = (call);                                                                             \
        if (error_ != hipSuccess) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, error_, hipGetErrorString(error_)); \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

#define EXPECT(condition)                                                               \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

// Prints a case and a digest (FNV-1a) of its bytes, and of small ones the first words themselves.
inline void report(const char *name, const void *data, size_t bytes)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    printf("%s: %zu bytes, %016llx:", name, bytes, (unsigned long long)digest);
    for (size_t i = 0; i < 4 && (i + 1) * 4 <= bytes; i++) {
        uint32_t word;
        memcpy(&word, (const char *)data + i * 4, 4);
        printf(" %08x", word);
    }
    printf("\n");
    fflush(stdout);
}

template <class T> void report(const char *name, const std::vector<T> &data)
{
    report(name, data.data(), data.size() * sizeof(T));
}

// Prints what device memory holds.
template <class T> void report_device(const char *name, const T *data, size_t count)
{
    std::vector<T> copy(count);
    CHECK(hipMemcpy(copy.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
    report(name, copy);
}

// The same numbers in every run.
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
    uint32_t next()
    {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return (uint32_t)(state >> 32);
    }
};

template <class T = uint32_t> std::vector<T> random_vector(size_t count, uint64_t seed)
{
    Random random(seed);
    std::vector<T> all(count);
    for (T &one : all) one = (T)random.next();
    return all;
}
