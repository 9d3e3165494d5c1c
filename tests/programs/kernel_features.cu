// What nvcc's programs rely on besides plain kernels: variables of all kinds, shared memory, shuffles, grids of three
// dimensions, and what kernels ask of the runtime: printf, malloc, assert.
//
// Exit status 0: every result was right.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstring>
#include <string>
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

static void expect(const char* what, long found, long wanted) {
  printf("%-58s %ld\n", what, found);
  if (found != wanted) {
    printf("  wanted %ld\n", wanted);
    failures++;
  }
}

__managed__ int managed[4] = {1, 2, 3, 4};
__device__ int variable = 5;
__device__ int* pointer = &variable;
__constant__ int constant[3] = {7, 8, 9};

__global__ void use_variables(int* out) {
  managed[threadIdx.x] += constant[threadIdx.x % 3];
  if (threadIdx.x == 0) {
    *out = variable + *pointer;
    variable = 77;
  }
}

static void variables() {
  int *out, found = 0, replaced[3] = {70, 80, 90};
  CHECK(cudaMalloc(&out, sizeof *out));
  use_variables<<<1, 4>>>(out);
  CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDefault));
  expect("a variable, and by a pointer to it", found, 10);
  CHECK(cudaDeviceSynchronize());
  expect("managed variables on the host", managed[0] * 1000000 + managed[1] * 10000 + managed[2] * 100 + managed[3], 8101211);
  CHECK(cudaMemcpyFromSymbol(&found, variable, sizeof found));
  expect("a variable that a kernel changed", found, 77);
  CHECK(cudaMemcpyToSymbol(constant, replaced, sizeof replaced));
  use_variables<<<1, 4>>>(out);
  CHECK(cudaDeviceSynchronize());
  expect("constants that the host changed", managed[1], 90);
  CHECK(cudaFree(out));
}

template <int threads>
__global__ void sum(const int* values, int count, int* out) {
  extern __shared__ int part[];
  int t = threadIdx.x, own = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < count; i += gridDim.x * blockDim.x) own += values[i];
  part[t] = own;
  __syncthreads();
  for (int half = threads / 2; half; half >>= 1) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, part[0]);
}

__global__ void coordinates(int* out, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  out[(z * gridDim.y * blockDim.y + y) * width + x] = x + 1000 * y + 1000000 * z;
}

__global__ void warp_sum(int* out) {
  int value = threadIdx.x;
  for (int distance = 16; distance; distance >>= 1) value += __shfl_xor_sync(0xffffffff, value, distance);
  out[threadIdx.x] = value;
}

static void shapes() {
  const int count = 100003, width = 24, height = 12, depth = 3;
  std::vector<int> values(count), grid(width * height * depth);
  long wanted = 0;
  for (int i = 0; i < count; i++) wanted += values[i] = i % 1000 - 300;
  int *in, *out, found = 0, wrong = 0;
  CHECK(cudaMalloc(&in, count * sizeof(int)));
  CHECK(cudaMalloc(&out, grid.size() * sizeof(int)));
  CHECK(cudaMemset(out, 0, sizeof(int)));
  CHECK(cudaMemcpy(in, values.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  sum<128><<<5, 128, 128 * sizeof(int)>>>(in, count, out);
  CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDefault));
  expect("a sum through dynamic shared memory", found, wanted);
  coordinates<<<dim3(3, 3, 3), dim3(8, 4)>>>(out, width);
  CHECK(cudaMemcpy(grid.data(), out, grid.size() * sizeof(int), cudaMemcpyDefault));
  for (int z = 0; z < depth; z++)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) wrong += grid[(z * height + y) * width + x] != x + 1000 * y + 1000000 * z;
  expect("threads of a grid of three dimensions in a wrong place", wrong, 0);
  warp_sum<<<1, 64>>>(out);
  CHECK(cudaMemcpy(grid.data(), out, 64 * sizeof(int), cudaMemcpyDefault));
  expect("a warp's sum by shuffles, first warp", grid[31], 31 * 16);
  expect("a warp's sum by shuffles, second warp", grid[32], 31 * 16 + 32 * 32);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

__global__ void hello(int count, double x) {
  printf("thread %d of %d: %s %.3f %llx %c%%\n", threadIdx.x, count, threadIdx.x & 1 ? "odd" : "even", x * threadIdx.x,
         0x123456789abcULL + threadIdx.x, 'a' + threadIdx.x);
}

// What kernels print comes out at a synchronisation, in order with what the program prints.
static void printing() {
  int saved = dup(1), ends[2];
  char text[4096] = "";
  fflush(stdout);
  if (pipe(ends) || dup2(ends[1], 1) < 0) {
    failures++;
    return;
  }
  printf("before\n");
  hello<<<1, 2>>>(2, 1.5);
  CHECK(cudaDeviceSynchronize());
  printf("after\n");
  fflush(stdout);
  dup2(saved, 1);
  ssize_t length = read(ends[0], text, sizeof text - 1);
  std::string wanted = "before\nthread 0 of 2: even 0.000 123456789abc a%\nthread 1 of 2: odd 1.500 123456789abd b%\nafter\n";
  expect("bytes printed by a kernel and around it", length, wanted.size());
  expect("of which wrong", wanted != text, 0);
  close(saved);
  close(ends[0]);
  close(ends[1]);
}

__global__ void allocate(int* good) {
  int* own = static_cast<int*>(malloc(64 * sizeof(int)));
  if (!own) return;
  for (int i = 0; i < 64; i++) own[i] = i * threadIdx.x;
  int total = 0;
  for (int i = 0; i < 64; i++) total += own[i];
  if (total == 2016 * static_cast<int>(threadIdx.x)) atomicAdd(good, 1);
  free(own);
}

static void heap() {
  int *good, found = 0;
  CHECK(cudaMalloc(&good, sizeof *good));
  CHECK(cudaMemset(good, 0, sizeof *good));
  allocate<<<2, 40>>>(good);
  CHECK(cudaMemcpy(&found, good, sizeof found, cudaMemcpyDefault));
  expect("threads whose own memory held what they wrote", found, 80);
  CHECK(cudaFree(good));
}

__global__ void asserts(int bound) { assert(static_cast<int>(threadIdx.x) < bound); }

// Last: a failed assertion ends the process's use of CUDA.
static void assertions() {
  asserts<<<1, 32>>>(32);
  CHECK(cudaDeviceSynchronize());
  asserts<<<1, 4>>>(2);
  expect("a failed assertion", cudaDeviceSynchronize(), cudaErrorAssert);
  expect("and every call after it", cudaDeviceSynchronize(), cudaErrorAssert);
}

int main() {
  variables();
  shapes();
  printing();
  heap();
  assertions();
  printf("%s\n", failures ? "FAILED" : "every result was right");
  return failures != 0;
}
