// What the test programs share: named cases that check themselves, and a reference on the host for every result of the device.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Case {
  const char* name;
  void (*run)();
  static std::vector<Case>& all() {
    static std::vector<Case> cases;
    return cases;
  }
  static int& failures() {
    static int count = 0;
    return count;
  }
};

#define CASE(NAME)                                                                     \
  static void NAME();                                                                  \
  static const bool NAME##_known = (Case::all().push_back({#NAME, NAME}), true);       \
  static void NAME()

__attribute__((format(printf, 1, 2))) static inline void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("    ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  Case::failures()++;
}

#define OK(call)                                                                                                \
  do {                                                                                                          \
    cudaError_t status_ = (call);                                                                               \
    if (status_ != cudaSuccess) fail("line %d: %s: %s (%d)", __LINE__, #call, cudaGetErrorName(status_), status_); \
  } while (0)

#define GIVES(expected, call)                                                                                   \
  do {                                                                                                          \
    cudaError_t status_ = (call);                                                                               \
    if (status_ != (expected)) fail("line %d: %s: %d, expected %d", __LINE__, #call, status_, (int)(expected)); \
    cudaGetLastError();                                                                                         \
  } while (0)

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) fail("line %d: not so: %s", __LINE__, #condition); \
  } while (0)

// An array on the device, with copies both ways.
template <typename T>
struct Device {
  T* data = nullptr;
  size_t count;
  explicit Device(size_t n) : count(n) {
    OK(cudaMalloc(&data, n * sizeof(T)));
    OK(cudaMemset(data, 0xa5, n * sizeof(T)));
  }
  explicit Device(const std::vector<T>& values) : count(values.size()) {
    OK(cudaMalloc(&data, count * sizeof(T)));
    OK(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  Device(const Device&) = delete;
  ~Device() { OK(cudaFree(data)); }
  std::vector<T> host() const {
    std::vector<T> values(count);
    OK(cudaGetLastError());
    OK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
};

// Compares with a relative tolerance in units of the last place of `T`; NaN equals NaN.
template <typename T>
static bool close(T got, T want, double ulps) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  T next = std::nextafter(std::fabs(want), std::numeric_limits<T>::infinity());
  return std::fabs((double)got - (double)want) <= ulps * ((double)next - std::fabs((double)want));
}

static int run_cases(int argc, char** argv) {
  int failed = 0, run = 0;
  for (const Case& one : Case::all()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; i++) wanted |= strcmp(argv[i], one.name) == 0;
    if (!wanted) continue;
    Case::failures() = 0;
    one.run();
    run++;
    failed += Case::failures() != 0;
    printf("%s %s\n", Case::failures() ? "FAILED" : "ok", one.name);
    fflush(stdout);
  }
  printf("%d cases, %d failed\n", run, failed);
  return failed ? 1 : 0;
}
