// The order of operations in and across streams, checked by values: every kernel accepts only the value that the operation
// before it in order has left. More streams than hardware queues, so that some share.
//
// Exit status 0: every order was kept.
#include <cuda_runtime.h>

#include <cstdio>
#include <thread>
#include <vector>

static int failures;

#define CHECK(call)                                                                              \
  do {                                                                                           \
    cudaError_t status = (call);                                                                 \
    if (status != cudaSuccess) {                                                                 \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));          \
      failures++;                                                                                \
    }                                                                                            \
  } while (0)

static void expect(const char* what, int found, int wanted) {
  printf("%-58s %d\n", what, found);
  if (found != wanted) {
    printf("  wanted %d\n", wanted);
    failures++;
  }
}

// Goes from `from` to `from` + 1; anything else shows that somebody was too early or too late.
__global__ void step(int* value, int from) {
  if (*value == from)
    *value = from + 1;
  else
    atomicExch(value, -1000000);
}

__global__ void add(int* value, int amount) { atomicAdd(value, amount); }

static void increment(void* value) { ++*static_cast<int*>(value); }

// 24 streams pass a token round by events, with and without timing.
static void token() {
  const int streams = 24, rounds = 6;
  std::vector<cudaStream_t> stream(streams);
  std::vector<cudaEvent_t> event(streams);
  int *value, found = 0, steps = 0;
  CHECK(cudaMalloc(&value, sizeof *value));
  CHECK(cudaMemset(value, 0, sizeof *value));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < streams; i++) {
    CHECK(cudaStreamCreateWithFlags(&stream[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    CHECK(cudaEventCreateWithFlags(&event[i], i % 3 ? cudaEventDisableTiming : cudaEventDefault));
  }
  for (int round = 0; round < rounds; round++)
    for (int i = 0; i < streams; i++, steps++) {
      if (steps) CHECK(cudaStreamWaitEvent(stream[i], event[(i + streams - 1) % streams], 0));
      step<<<1, 1, 0, stream[i]>>>(value, steps);
      CHECK(cudaEventRecord(event[i], stream[i]));
    }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&found, value, sizeof found, cudaMemcpyDefault));
  expect("a token goes round 24 streams by events", found, steps);
  for (int i = 0; i < streams; i++) {
    CHECK(cudaStreamDestroy(stream[i]));
    CHECK(cudaEventDestroy(event[i]));
  }
  CHECK(cudaFree(value));
}

// Kernel, download, host function, upload, and so on: four engines take turns in one stream.
static void engines() {
  const int turns = 60;
  int *value, *pinned;
  cudaStream_t stream;
  CHECK(cudaMalloc(&value, sizeof *value));
  CHECK(cudaMallocHost(&pinned, sizeof *pinned));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMemsetAsync(value, 0, sizeof *value, stream));
  for (int i = 0; i < turns; i++) {
    step<<<1, 1, 0, stream>>>(value, 2 * i);
    CHECK(cudaMemcpyAsync(pinned, value, sizeof *value, cudaMemcpyDefault, stream));
    CHECK(cudaLaunchHostFunc(stream, increment, pinned));
    CHECK(cudaMemcpyAsync(value, pinned, sizeof *value, cudaMemcpyDefault, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  expect("kernels, copies and host functions take turns", *pinned, 2 * turns);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(value));
}

// Blocking streams and the legacy default stream wait for each other without being told to.
static void legacy() {
  const int streams = 5, turns = 40;
  cudaStream_t stream[streams];
  int *value, found = 0;
  CHECK(cudaMalloc(&value, sizeof *value));
  for (auto& s : stream) CHECK(cudaStreamCreate(&s));
  CHECK(cudaMemset(value, 0, sizeof *value));
  for (int i = 0; i < turns; i++) {
    step<<<1, 1, 0, stream[i % streams]>>>(value, 2 * i);
    step<<<1, 1>>>(value, 2 * i + 1);
  }
  CHECK(cudaMemcpy(&found, value, sizeof found, cudaMemcpyDefault));
  expect("blocking streams and the default stream alternate", found, 2 * turns);
  for (auto& s : stream) CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(value));
}

// Four threads with a stream and a default stream each; what a thread downloads is what it has enqueued so far.
static void threads() {
  const int count = 4, launches = 50;
  int *counters, found[2 * count];
  int wrong[count] = {};
  CHECK(cudaMalloc(&counters, sizeof found));
  CHECK(cudaMemset(counters, 0, sizeof found));
  CHECK(cudaDeviceSynchronize());
  std::vector<std::thread> thread;
  for (int t = 0; t < count; t++)
    thread.emplace_back([=, &wrong] {
      cudaStream_t stream;
      cudaEvent_t event;
      CHECK(cudaStreamCreate(&stream));
      CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      for (int i = 0; i < launches; i++) {
        add<<<2, 32, 0, stream>>>(counters + t, 1);
        if (i % 7 == 0) {
          CHECK(cudaEventRecord(event, stream));
          CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0));
          add<<<1, 1, 0, cudaStreamPerThread>>>(counters + count + t, 1);
        }
        if (i % 11 == 0) {
          int value = 0;
          CHECK(cudaMemcpyAsync(&value, counters + t, sizeof value, cudaMemcpyDeviceToHost, stream));
          wrong[t] += value != 64 * (i + 1);
        }
      }
      CHECK(cudaStreamSynchronize(stream));
      CHECK(cudaStreamDestroy(stream));
      CHECK(cudaEventDestroy(event));
    });
  for (auto& t : thread) t.join();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(found, counters, sizeof found, cudaMemcpyDefault));
  for (int t = 0; t < count; t++) {
    expect("launches of a thread", found[t], 64 * launches);
    expect("launches on its own default stream", found[count + t], (launches + 6) / 7);
    expect("downloads that were early or late", wrong[t], 0);
  }
  CHECK(cudaFree(counters));
}

int main() {
  token();
  engines();
  legacy();
  threads();
  printf("%s\n", failures ? "FAILED" : "every order was kept");
  return failures != 0;
}
