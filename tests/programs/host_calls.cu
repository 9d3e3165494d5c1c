// What CUDA programs do on the host: streams, events, callbacks, copies of rectangles, pinned and registered memory, several threads,
// several GPUs, and calls with arguments that are wrong.
#include <cuda.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cases.h"

__global__ void add_kernel(int* data, int n, int value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] += value;
}

__global__ void busy_kernel(int* data, int rounds) {
  unsigned x = threadIdx.x;
  for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
  if (x == 7) data[0] = 1;
}

static bool all_are(const std::vector<int>& values, int want) {
  for (size_t i = 0; i < values.size(); i++)
    if (values[i] != want) return fail("element %zu: %d, expected %d", i, values[i], want), false;
  return true;
}

CASE(streams_and_events) {
  const int n = 4096, count = 4;
  Device<int> shared(std::vector<int>(n, 0));
  cudaStream_t streams[count];
  cudaEvent_t done[count], start, stop;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&stop));
  for (int i = 0; i < count; i++) {
    OK(cudaStreamCreateWithFlags(&streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    OK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
  }
  OK(cudaEventRecord(start, streams[0]));
  // Each stream waits for the one before: additions into the same elements without atomics.
  for (int round = 0; round < 5; round++)
    for (int i = 0; i < count; i++) {
      OK(cudaStreamWaitEvent(streams[i], done[(i + count - 1) % count], 0));
      add_kernel<<<4, 64, 0, streams[i]>>>(shared.data, n, 1);
      OK(cudaEventRecord(done[i], streams[i]));
    }
  OK(cudaEventRecord(stop, streams[count - 1]));
  OK(cudaEventSynchronize(stop));
  OK(cudaEventQuery(stop));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, start, stop));
  EXPECT(milliseconds > 0 && milliseconds < 60000);
  GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, done[0]));
  all_are(shared.host(), 20);
  for (int i = 0; i < count; i++) {
    OK(cudaStreamQuery(streams[i]));
    OK(cudaStreamDestroy(streams[i]));
    OK(cudaEventDestroy(done[i]));
  }
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(stop));
}

CASE(host_functions) {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  static std::vector<int> order;
  order.clear();
  Device<int> data(std::vector<int>(64, 0));
  static int seen[64];
  for (int i = 0; i < 5; i++) {
    add_kernel<<<1, 64, 0, stream>>>(data.data, 64, 1);
    OK(cudaMemcpyAsync(seen, data.data, sizeof seen, cudaMemcpyDeviceToHost, stream));
    OK(cudaLaunchHostFunc(stream, [](void*) { order.push_back(seen[63]); }, nullptr));
  }
  OK(cudaStreamAddCallback(stream, [](cudaStream_t, cudaError_t status, void* value) { order.push_back((int)(intptr_t)value + status); }, (void*)99, 0));
  OK(cudaStreamSynchronize(stream));
  EXPECT((order == std::vector<int>{1, 2, 3, 4, 5, 99}));
  // CUDA calls from a host function are refused, and do not hang.
  static cudaError_t inside;
  OK(cudaLaunchHostFunc(stream, [](void*) { void* p; inside = cudaMalloc(&p, 16); }, nullptr));
  OK(cudaStreamSynchronize(stream));
  EXPECT(inside == cudaErrorNotPermitted);
  OK(cudaStreamDestroy(stream));
}

CASE(rectangles) {
  const int width = 37, height = 11;
  int* device;
  size_t pitch;
  OK(cudaMallocPitch((void**)&device, &pitch, width * sizeof(int), height));
  EXPECT(pitch >= width * sizeof(int) && pitch % 128 == 0);
  std::vector<int> in(width * height), out(in.size() * 2, -1);
  for (size_t i = 0; i < in.size(); i++) in[i] = (int)i * 3;
  OK(cudaMemset2D(device, pitch, 0x11, width * sizeof(int), height));
  OK(cudaMemcpy2D(device, pitch, in.data(), width * sizeof(int), width * sizeof(int), height, cudaMemcpyHostToDevice));
  add_kernel<<<1, 64>>>(device, width, 1);
  OK(cudaMemcpy2DAsync(out.data(), 2 * width * sizeof(int), device, pitch, width * sizeof(int), height, cudaMemcpyDeviceToHost, 0));
  OK(cudaDeviceSynchronize());
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      EXPECT(out[y * 2 * width + x] == in[y * width + x] + (y == 0));
      EXPECT(out[y * 2 * width + width + x] == -1);
    }
  GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 4, in.data(), 8, 8, 2, cudaMemcpyHostToDevice));
  OK(cudaFree(device));
}

CASE(memsets) {
  Device<unsigned char> bytes(1001);
  OK(cudaMemset(bytes.data + 3, 0x5c, 990));
  auto got = bytes.host();
  for (int i = 0; i < 1001; i++) EXPECT(got[i] == (i >= 3 && i < 993 ? 0x5c : 0xa5));
  EXPECT(cuMemsetD16((CUdeviceptr)bytes.data + 2, 0x1234, 100) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32((CUdeviceptr)bytes.data + 400, 0xdeadbeef, 50) == CUDA_SUCCESS);
  got = bytes.host();
  EXPECT(got[2] == 0x34 && got[3] == 0x12 && got[201] == 0x12 && got[202] == 0x5c);
  EXPECT(got[400] == 0xef && got[599] == 0xde && got[600] == 0x5c);
}

CASE(host_memory) {
  const int n = 10000;
  int *pinned, *mapped, *alias;
  OK(cudaMallocHost((void**)&pinned, n * sizeof(int)));
  OK(cudaHostAlloc((void**)&mapped, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
  std::vector<int> pageable(n + 1, 5);
  OK(cudaHostRegister(pageable.data() + 1, n * sizeof(int), cudaHostRegisterMapped));
  for (int i = 0; i < n; i++) pinned[i] = mapped[i] = i;
  // Kernels reach all three in place.
  add_kernel<<<3, 96>>>(pinned, n, 7);
  OK(cudaHostGetDevicePointer((void**)&alias, mapped, 0));
  add_kernel<<<3, 96>>>(alias, n, 8);
  OK(cudaHostGetDevicePointer((void**)&alias, pageable.data() + 1, 0));
  add_kernel<<<3, 96>>>(alias, n, 9);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    if (pinned[i] != i + 7 || mapped[i] != i + 8 || pageable[i + 1] != 14) return fail("element %d: %d %d %d", i, pinned[i], mapped[i], pageable[i + 1]);
  EXPECT(pageable[0] == 5);
  GIVES(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pageable.data() + 1, 64, 0));
  OK(cudaHostUnregister(pageable.data() + 1));
  GIVES(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pageable.data() + 1));
  OK(cudaFreeHost(pinned));
  OK(cudaFreeHost(mapped));
  GIVES(cudaErrorInvalidValue, cudaFreeHost(pageable.data()));
}

CASE(ordered_allocation) {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  for (int round = 0; round < 20; round++) {
    int* data;
    if (cudaMallocAsync((void**)&data, 4096, stream) == cudaErrorNotSupported) break;
    OK(cudaMemsetAsync(data, 0, 4096, stream));
    add_kernel<<<1, 64, 0, stream>>>(data, 1024, round);
    std::vector<int> back(1024);
    OK(cudaMemcpyAsync(back.data(), data, 4096, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(data, stream));
    OK(cudaStreamSynchronize(stream));
    all_are(back, round);
  }
  cudaGetLastError();
  OK(cudaStreamDestroy(stream));
}

extern "C" {
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
}

// A stream that waits for a word of pinned memory, with a kernel behind that adds to data.
struct HeldStream {
  cudaStream_t stream;
  int* flag;
  Device<int> data;
  HeldStream() : data(std::vector<int>(64, 1)) {
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMallocHost((void**)&flag, sizeof(int)));
    *flag = 0;
    EXPECT(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    add_kernel<<<1, 64, 0, stream>>>(data.data, 64, 4);
  }
  bool is_held() { return cudaStreamQuery(stream) == cudaErrorNotReady; }
  ~HeldStream() {
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cudaStreamSynchronize(stream));
    all_are(data.host(), 5);
    OK(cudaStreamDestroy(stream));
    OK(cudaFreeHost(flag));
  }
};

// Programs call them whether a profiler is there or not: they succeed, wait for nothing and change nothing.
CASE(profiler_hooks) {
  Device<int> data(std::vector<int>(64, 0));  // outlives the stream: cudaFree would wait for it
  HeldStream held;
  for (int i = 0; i < 3; i++) {
    OK(cudaProfilerStart());
    OK(cudaProfilerStart());
    EXPECT(cuProfilerStart() == CUDA_SUCCESS);
    add_kernel<<<1, 64>>>(data.data, 64, 2);
    OK(cudaProfilerStop());
    EXPECT(cuProfilerStop() == CUDA_SUCCESS);
    OK(cudaProfilerStop());
    all_are(data.host(), 2 * (i + 1));
    OK(cudaGetLastError());
  }
  EXPECT(held.is_held());
}

// What makes and loads things does not wait for a stream that the same thread will release only later.
CASE(loading_beside_a_stream_that_waits) {
  static const char ptx[] =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry triple(.param .u64 to) { .reg .u64 %a; .reg .u32 %v; .reg .u32 %i; .reg .u64 %o;\n"
      " ld.param.u64 %a, [to]; mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o;\n"
      " ld.global.u32 %v, [%a]; mul.lo.u32 %v, %v, 3; st.global.u32 [%a], %v; ret; }\n";
  HeldStream held;
  CUmodule module;
  CUfunction function;
  EXPECT(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
  EXPECT(cuModuleGetFunction(&function, module, "triple") == CUDA_SUCCESS);
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* data;
  std::vector<int> values(64);
  for (int i = 0; i < 64; i++) values[i] = i;
  OK(cudaMalloc((void**)&data, 256));
  OK(cudaMemcpyAsync(data, values.data(), 256, cudaMemcpyHostToDevice, stream));
  void* arguments[] = {&data};
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr) == CUDA_SUCCESS);
  OK(cudaMemcpyAsync(values.data(), data, 256, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < 64; i++)
    if (values[i] != 3 * i) fail("element %d is %d", i, values[i]);
  CUcontext context, current;
  EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  EXPECT(cuCtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  EXPECT(cuCtxDestroy(context) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(current) == CUDA_SUCCESS);
  OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  OK(cudaStreamDestroy(stream));
  EXPECT(held.is_held());
}

static void* launches(void* argument) {
  long id = (long)argument;
  int gpus = 1;
  OK(cudaGetDeviceCount(&gpus));
  OK(cudaSetDevice((int)(id % gpus)));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  std::vector<int> in(3000), back(3000);
  for (int round = 0; round < 6; round++) {
    int* data;
    OK(cudaMalloc((void**)&data, in.size() * sizeof(int)));
    for (size_t i = 0; i < in.size(); i++) in[i] = (int)(i * id);
    OK(cudaMemcpyAsync(data, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice, stream));
    add_kernel<<<2, 64, 0, stream>>>(data, (int)in.size(), round);
    OK(cudaMemcpyAsync(back.data(), data, in.size() * sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, data + 5));
    if (attributes.type != cudaMemoryTypeDevice || attributes.device != id % gpus) fail("thread %ld: pointer attributes", id);
    OK(cudaFree(data));
    for (size_t i = 0; i < in.size(); i++)
      if (back[i] != in[i] + round) return fail("thread %ld, round %d, element %zu", id, round, i), nullptr;
  }
  OK(cudaStreamDestroy(stream));
  return nullptr;
}

CASE(threads) {
  pthread_t threads[8];
  for (long i = 0; i < 8; i++) pthread_create(&threads[i], nullptr, launches, (void*)i);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

CASE(peers) {
  int gpus = 0, can = 0;
  OK(cudaGetDeviceCount(&gpus));
  if (gpus < 2) return;
  std::vector<int> in(50000);
  for (size_t i = 0; i < in.size(); i++) in[i] = (int)i;
  size_t bytes = in.size() * sizeof(int);
  OK(cudaSetDevice(0));
  Device<int> first(in);
  OK(cudaSetDevice(1));
  Device<int> second(in.size());
  OK(cudaDeviceCanAccessPeer(&can, 1, 0));
  EXPECT(can == 1);
  OK(cudaMemcpyPeer(second.data, 1, first.data, 0, bytes));
  EXPECT(second.host() == in);
  OK(cudaDeviceEnablePeerAccess(0, 0));
  GIVES(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(0, 0));
  add_kernel<<<4, 64>>>(first.data, (int)in.size(), 3);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(second.data, first.data, bytes, cudaMemcpyDefault));
  auto got = second.host();
  for (size_t i = 0; i < in.size(); i++)
    if (got[i] != in[i] + 3) return fail("element %zu", i);
  OK(cudaDeviceDisablePeerAccess(0));
  OK(cudaSetDevice(0));
}

CASE(wrong_arguments) {
  int* data;
  OK(cudaMalloc((void**)&data, 1024));
  GIVES(cudaErrorInvalidConfiguration, (add_kernel<<<0, 64>>>(data, 1, 1), cudaGetLastError()));
  GIVES(cudaErrorInvalidConfiguration, (add_kernel<<<1, 2048>>>(data, 1, 1), cudaGetLastError()));
  GIVES(cudaErrorInvalidConfiguration, (add_kernel<<<dim3(1, 70000), 1>>>(data, 1, 1), cudaGetLastError()));
  GIVES(cudaErrorInvalidResourceHandle, (add_kernel<<<1, 1, 0, (cudaStream_t)0x1234560>>>(data, 1, 1), cudaGetLastError()));
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(77));
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(-1));
  GIVES(cudaErrorInvalidValue, cudaMemcpy(data, nullptr, 16, cudaMemcpyHostToDevice));
  GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpy(data, data, 16, (cudaMemcpyKind)9));
  int* none;
  GIVES(cudaErrorMemoryAllocation, cudaMalloc((void**)&none, ~(size_t)0 >> 1));
  GIVES(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
  GIVES(cudaErrorInvalidResourceHandle, cudaLaunchKernel((const void*)&all_are, dim3(1), dim3(1), nullptr, 0, nullptr));
  GIVES(cudaErrorInvalidResourceHandle, cudaEventDestroy((cudaEvent_t)0x55aa));
  GIVES(cudaErrorInvalidResourceHandle, cudaStreamDestroy((cudaStream_t)data));
  cudaIpcMemHandle_t handle;
  for (int i = 0; i < 64; i++) handle.reserved[i] = (char)(i * 37 + 11);
  void* opened = nullptr;
  cudaError_t status = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
  EXPECT(status == cudaErrorInvalidValue || status == cudaErrorInvalidResourceHandle || status == cudaErrorMapBufferObjectFailed);
  cudaGetLastError();
  for (int bit = 0; bit < 512; bit += 7) {
    OK(cudaIpcGetMemHandle(&handle, data));
    handle.reserved[bit / 8] ^= (char)(1 << bit % 8);
    if (cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) OK(cudaIpcCloseMemHandle(opened));
    cudaGetLastError();
  }
  OK(cudaFree(data));
  GIVES(cudaErrorInvalidValue, cudaFree(data));
}

#define GIVES_CU(expected, call)                                                                                \
  do {                                                                                                          \
    CUresult status_ = (call);                                                                                  \
    if (status_ != (expected)) fail("line %d: %s: %d, expected %d", __LINE__, #call, status_, (int)(expected)); \
  } while (0)

// A fat binary with one text in it, as nvcc would wrap it.
static std::vector<unsigned char> fat_binary(const std::string& ptx) {
  const uint32_t header = 16, entry = 64;
  uint64_t payload = (ptx.size() + 8) & ~7ull, size = entry + payload, flags = 0x11;
  std::vector<unsigned char> bytes(header + size);
  auto put = [&](size_t at, uint64_t value, size_t width) { memcpy(&bytes[at], &value, width); };
  put(0, 0xba55ed50u, 4), put(4, 1, 2), put(6, header, 2), put(8, size, 8);
  put(16, 1, 2), put(18, 0x101, 2), put(20, entry, 4), put(24, payload, 8), put(40, 8, 2), put(42, 7, 2), put(44, 75, 4), put(56, flags, 8);
  memcpy(&bytes[header + entry], ptx.c_str(), ptx.size());
  return bytes;
}

// PTX can be linked in whatever comes with it: text, fat binaries, object files. Machine code cannot.
CASE(linker_inputs) {
  OK(cudaFree(0));
  const std::string head = ".version 7.8\n.target sm_75\n.address_size 64\n";
  const std::string user = head + ".extern .func (.param .b32 r) plus(.param .b32 x);\n.visible .entry k(.param .u64 p) { .reg .u64 t; .reg .u32 v; "
                                  ".param .b32 a; .param .b32 b; ld.param.u64 t, [p]; ld.global.u32 v, [t]; st.param.b32 [a], v; call.uni (b), plus, (a); "
                                  "ld.param.b32 v, [b]; st.global.u32 [t], v; ret; }";
  const std::string maker = head + ".visible .func (.param .b32 r) plus(.param .b32 x) { .reg .u32 v; ld.param.u32 v, [x]; add.u32 v, v, 22; "
                                   "st.param.b32 [r], v; ret; }";
  std::vector<unsigned char> fat = fat_binary(maker);
  CUlinkState linker;
  GIVES_CU(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &linker));
  GIVES_CU(CUDA_SUCCESS, cuLinkAddData(linker, CU_JIT_INPUT_PTX, (void*)user.c_str(), user.size(), "user.ptx", 0, nullptr, nullptr));
  GIVES_CU(CUDA_SUCCESS, cuLinkAddData(linker, CU_JIT_INPUT_FATBINARY, fat.data(), fat.size(), "maker.fatbin", 0, nullptr, nullptr));
  void* image;
  size_t size;
  CUmodule module;
  CUfunction function;
  GIVES_CU(CUDA_SUCCESS, cuLinkComplete(linker, &image, &size));
  GIVES_CU(CUDA_SUCCESS, cuModuleLoadData(&module, image));
  GIVES_CU(CUDA_SUCCESS, cuLinkDestroy(linker));
  GIVES_CU(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "k"));
  Device<int> value(std::vector<int>(1, 20));
  void* arguments[] = {&value.data};
  GIVES_CU(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  all_are(value.host(), 42);
  GIVES_CU(CUDA_SUCCESS, cuModuleUnload(module));

  // This program is an object file as good as any.
  GIVES_CU(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &linker));
  GIVES_CU(CUDA_SUCCESS, cuLinkAddFile(linker, CU_JIT_INPUT_OBJECT, "/proc/self/exe", 0, nullptr, nullptr));
  GIVES_CU(CUDA_SUCCESS, cuLinkComplete(linker, &image, &size));
  GIVES_CU(CUDA_SUCCESS, cuModuleLoadData(&module, image));
  GIVES_CU(CUDA_SUCCESS, cuLinkDestroy(linker));
  GIVES_CU(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "_Z10add_kernelPiii"));
  int n = 1, more = 8;
  void* three[] = {&value.data, &n, &more};
  GIVES_CU(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, three, nullptr));
  all_are(value.host(), 50);
  GIVES_CU(CUDA_SUCCESS, cuModuleUnload(module));

  // The header of a cubin, of a program for another machine, and fat binaries that end too early.
  unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  elf[18] = 190;
  GIVES_CU(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, elf));
  GIVES_CU(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &linker));
  GIVES_CU(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLinkAddData(linker, CU_JIT_INPUT_CUBIN, elf, sizeof elf, "a.cubin", 0, nullptr, nullptr));
  GIVES_CU(CUDA_SUCCESS, cuLinkDestroy(linker));
  elf[18] = 62;
  GIVES_CU(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, elf));
  for (size_t length : {size_t(15), size_t(16), size_t(60), fat.size() - 1}) {
    GIVES_CU(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &linker));
    GIVES_CU(CUDA_ERROR_INVALID_IMAGE, cuLinkAddData(linker, CU_JIT_INPUT_FATBINARY, fat.data(), length, "cut", 0, nullptr, nullptr));
    GIVES_CU(CUDA_SUCCESS, cuLinkDestroy(linker));
  }
}

// Images that no compiler wrote: each gets an error, and what came before still works.
CASE(malformed_modules) {
  OK(cudaFree(0));
  CUmodule module;
  CUfunction function;
  void* arguments[] = {&module};
  const char* texts[] = {"", " ", "not ptx at all", ".version", ".version 99.9\n.target sm_999\n", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(",
                         ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { frobnicate.u32 %r1; }",
                         ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 8 .b8 huge[1099511627776000];\n.visible .entry k() { ret; }",
                         ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { bra nowhere; }"};
  for (const char* text : texts) {
    CUresult status = cuModuleLoadData(&module, text);
    if (status == CUDA_SUCCESS) {
      // A text may only fail when its kernel is compiled.
      if (cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS &&
          cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS)
        fail("launched: %s", text);
      cuModuleUnload(module);
    } else if (status != CUDA_ERROR_INVALID_IMAGE && status != CUDA_ERROR_INVALID_PTX && status != CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
               status != CUDA_ERROR_NO_BINARY_FOR_GPU && status != CUDA_ERROR_OUT_OF_MEMORY && status != CUDA_ERROR_NOT_SUPPORTED &&
               status != CUDA_ERROR_INVALID_SOURCE) {
      fail("status %d for %.60s", status, text);
    }
  }
  // Fat binaries whose sizes lie.
  for (unsigned seed = 0; seed < 300; seed++) {
    alignas(16) unsigned char image[256] = {};
    unsigned x = seed * 2654435761u + 1;
    for (size_t i = 0; i < sizeof image; i++) x = x * 1664525u + 1013904223u, image[i] = seed % 3 ? 0 : x >> 24;
    unsigned magic = 0xba55ed50u;
    uint16_t version = 1, header = 16;
    uint64_t size = seed % 5 == 0 ? ~0ull : sizeof image - 16;
    memcpy(image, &magic, 4), memcpy(image + 4, &version, 2), memcpy(image + 6, &header, 2), memcpy(image + 8, &size, 8);
    uint16_t kind = seed % 4;
    uint32_t entry_header = seed % 7 == 0 ? 0 : seed % 7 == 1 ? 0xffffffffu : 64;
    uint64_t entry_size = seed % 11 == 0 ? ~0ull : seed % 11;
    memcpy(image + 16, &kind, 2), memcpy(image + 20, &entry_header, 4), memcpy(image + 24, &entry_size, 8);
    if (cuModuleLoadFatBinary(&module, image) == CUDA_SUCCESS) cuModuleUnload(module);
  }
  Device<int> data(std::vector<int>(64, 1));
  add_kernel<<<1, 64>>>(data.data, 64, 1);
  all_are(data.host(), 2);
}

CASE(fork_after_init) {
  Device<int> data(std::vector<int>(64, 1));
  pid_t child = fork();
  if (child == 0) {
    int* p = nullptr;
    cudaError_t status = cudaMalloc((void**)&p, 64);
    _exit(status == cudaErrorInitializationError ? 0 : 1);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  add_kernel<<<1, 64>>>(data.data, 64, 1);
  all_are(data.host(), 2);
}

CASE(reset) {
  int* data;
  OK(cudaMalloc((void**)&data, 1024));
  busy_kernel<<<1, 64>>>(data, 2000);
  OK(cudaDeviceReset());
  GIVES(cudaErrorInvalidValue, cudaFree(data));
  Device<int> again(std::vector<int>(64, 1));
  add_kernel<<<1, 64>>>(again.data, 64, 4);
  all_are(again.host(), 5);
}

int main(int argc, char** argv) {
  int status = run_cases(argc, argv);
  // The end of a process while a kernel runs.
  int* data;
  if (cudaMalloc((void**)&data, 1024) == cudaSuccess) busy_kernel<<<1, 64>>>(data, 100000);
  return status;
}
