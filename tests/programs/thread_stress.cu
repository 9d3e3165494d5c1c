// Eight threads allocate, launch, wait, copy and free on all devices at once, each in random order, and check every word.
//
// A stream's waits must hold the signals they name: a free on another thread trims what has ended, and a recycled signal once
// left a copy waiting for its next user for ever.
//
//   thread_stress [SECONDS]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

__global__ void multiply(int* out, int n, int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * factor;
}

static void check(cudaError_t status, const char* call, int line) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "thread_stress.cu:%d: %s: %s\n", line, call, cudaGetErrorString(status));
  exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

struct Random {
  uint32_t state;
  uint32_t below(uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
  }
};

static long work(int id, int devices, time_t end) {
  Random random = {(uint32_t)id + 1};
  int device = id % devices;
  CHECK(cudaSetDevice(device));
  cudaStream_t own;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&own));
  CHECK(cudaEventCreate(&event));
  long rounds = 0;
  for (; time(nullptr) < end; rounds++) {
    int words = 1 + random.below(20000), factor = random.below(4096), *data;
    cudaStream_t stream = random.below(2) ? own : 0;
    CHECK(cudaMalloc(&data, words * sizeof(int)));
    multiply<<<(words + 255) / 256, 256, 0, stream>>>(data, words, factor);
    CHECK(cudaGetLastError());
    if (random.below(2)) {
      CHECK(cudaEventRecord(event, stream));
      while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
    }
    std::vector<int> host(words);
    if (random.below(2)) {
      CHECK(cudaMemcpyAsync(host.data(), data, words * sizeof(int), cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
    } else {
      CHECK(cudaStreamSynchronize(stream));
      CHECK(cudaMemcpy(host.data(), data, words * sizeof(int), cudaMemcpyDefault));
    }
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, data + words / 2));
    for (int i = 0; i < words; i++)
      if (host[i] != i * factor || attributes.device != device) {
        fprintf(stderr, "thread %d, round %ld: word %d is %d, not %d (device %d, not %d)\n", id, rounds, i, host[i], i * factor,
                attributes.device, device);
        exit(1);
      }
    if (random.below(50) == 0) {
      CHECK(cudaStreamDestroy(own));
      CHECK(cudaStreamCreate(&own));
    }
    CHECK(cudaFree(data));
  }
  return rounds;
}

int main(int argc, char** argv) {
  int seconds = argc > 1 ? atoi(argv[1]) : 3, devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  time_t end = time(nullptr) + seconds;
  long rounds[8];
  std::vector<std::thread> threads;
  for (int id = 0; id < 8; id++) threads.emplace_back([&, id] { rounds[id] = work(id, devices, end); });
  long total = 0;
  for (int id = 0; id < 8; id++) threads[id].join(), total += rounds[id];
  printf("%ld rounds of 8 threads on %d devices, every word right\n", total, devices);
}
