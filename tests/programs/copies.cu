// Copies and fills in every form and between all kinds of memory: every byte of both sides is compared with what the host computes.
#include "cases.h"

#include <cuda.h>

enum Kind { DEVICE, PINNED, PAGEABLE, REGISTERED, MANAGED, KINDS };
static const char* const NAMES[] = {"device", "pinned", "pageable", "registered", "managed"};

// Memory of one kind, with a copy of what it must hold.
struct Memory {
  Kind kind;
  size_t size;
  unsigned char* data = nullptr;
  std::vector<unsigned char> want;
  std::vector<unsigned char> own;

  Memory(Kind kind, size_t size, unsigned seed) : kind(kind), size(size), want(size) {
    for (size_t i = 0; i < size; i++) want[i] = (unsigned char)(seed * 37 + i * 11 + (i >> 8));
    switch (kind) {
      case DEVICE: OK(cudaMalloc((void**)&data, size)); break;
      case PINNED: OK(cudaMallocHost((void**)&data, size)); break;
      case MANAGED: OK(cudaMallocManaged((void**)&data, size)); break;
      default:
        own.resize(size + 8192);
        data = (unsigned char*)(((uintptr_t)own.data() + 4095) & ~(uintptr_t)4095);
        if (kind == REGISTERED) OK(cudaHostRegister(data, size, 0));
    }
    if (kind == DEVICE) {
      OK(cudaMemcpy(data, want.data(), size, cudaMemcpyHostToDevice));
    } else {
      memcpy(data, want.data(), size);
    }
  }
  ~Memory() {
    if (kind == DEVICE || kind == MANAGED) OK(cudaFree(data));
    if (kind == PINNED) OK(cudaFreeHost(data));
    if (kind == REGISTERED) OK(cudaHostUnregister(data));
  }
  void check(const char* what) const {
    std::vector<unsigned char> got(size);
    if (kind == DEVICE) {
      OK(cudaMemcpy(got.data(), data, size, cudaMemcpyDeviceToHost));
    } else {
      memcpy(got.data(), data, size);
    }
    for (size_t i = 0; i < size; i++)
      if (got[i] != want[i]) {
        fail("%s, %s memory: byte %zu is %#x, expected %#x", what, NAMES[kind], i, got[i], want[i]);
        return;
      }
  }
};

static cudaStream_t stream() {
  static cudaStream_t s;
  if (!s) OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

// Runs `copy` between memory of all kinds; `model` does the same on the host.
template <class Copy, class Model>
static void everywhere(const char* what, size_t size, Copy copy, Model model) {
  for (int to = 0; to < KINDS; to++)
    for (int from = 0; from < KINDS; from++) {
      Memory dst((Kind)to, size, 1), src((Kind)from, size, 2);
      OK(cudaDeviceSynchronize());
      copy(dst.data, src.data);
      OK(cudaStreamSynchronize(stream()));
      OK(cudaDeviceSynchronize());
      model(dst.want.data(), src.want.data());
      dst.check(what);
      src.check(what);
    }
}

CASE(runs_of_bytes) {
  for (size_t count : {(size_t)1, (size_t)4097, (size_t)70001}) {
    auto model = [&](unsigned char* d, unsigned char* s) { memcpy(d + 3, s + 5, count); };
    everywhere("cudaMemcpy", 80000, [&](unsigned char* d, unsigned char* s) { OK(cudaMemcpy(d + 3, s + 5, count, cudaMemcpyDefault)); }, model);
    everywhere("cudaMemcpyAsync", 80000, [&](unsigned char* d, unsigned char* s) { OK(cudaMemcpyAsync(d + 3, s + 5, count, cudaMemcpyDefault, stream())); }, model);
  }
}

CASE(large_pageable_copies_use_many_staging_buffers) {
  Memory device(DEVICE, 9 << 20, 1), up(PAGEABLE, 9 << 20, 2), down(PAGEABLE, 9 << 20, 3);
  OK(cudaMemcpyAsync(device.data + 1, up.data, (9 << 20) - 1, cudaMemcpyHostToDevice, stream()));
  OK(cudaMemcpyAsync(down.data, device.data + 1, (9 << 20) - 1, cudaMemcpyDeviceToHost, stream()));
  OK(cudaStreamSynchronize(stream()));
  memcpy(device.want.data() + 1, up.want.data(), (9 << 20) - 1);
  memcpy(down.want.data(), up.want.data(), (9 << 20) - 1);
  device.check("upload");
  down.check("download");
}

CASE(rows) {
  auto model = [](unsigned char* d, unsigned char* s) {
    for (int y = 0; y < 13; y++) memcpy(d + 7 + y * 96, s + 3 + y * 57, 45);
  };
  everywhere("cudaMemcpy2D", 2048, [](unsigned char* d, unsigned char* s) { OK(cudaMemcpy2D(d + 7, 96, s + 3, 57, 45, 13, cudaMemcpyDefault)); }, model);
  everywhere("cudaMemcpy2DAsync", 2048, [](unsigned char* d, unsigned char* s) { OK(cudaMemcpy2DAsync(d + 7, 96, s + 3, 57, 45, 13, cudaMemcpyDefault, stream())); }, model);
}

static void boxes(unsigned char* d, unsigned char* s) {
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 4; y++) memcpy(d + ((2 + z) * 6 + 1 + y) * 64 + 5, s + ((1 + z) * 5 + y) * 48 + 9, 21);
}
CASE(cubes) {
  auto parameters = [](unsigned char* d, unsigned char* s) {
    cudaMemcpy3DParms p = {};
    p.dstPtr = make_cudaPitchedPtr(d, 64, 64, 6);
    p.dstPos = make_cudaPos(5, 1, 2);
    p.srcPtr = make_cudaPitchedPtr(s, 48, 48, 5);
    p.srcPos = make_cudaPos(9, 0, 1);
    p.extent = make_cudaExtent(21, 4, 3);
    p.kind = cudaMemcpyDefault;
    return p;
  };
  everywhere("cudaMemcpy3D", 2400, [&](unsigned char* d, unsigned char* s) { auto p = parameters(d, s); OK(cudaMemcpy3D(&p)); }, boxes);
  everywhere("cudaMemcpy3DAsync", 2400, [&](unsigned char* d, unsigned char* s) { auto p = parameters(d, s); OK(cudaMemcpy3DAsync(&p, stream())); }, boxes);
}

CASE(batches) {
  auto copy = [](unsigned char* d, unsigned char* s) {
    void* dsts[3] = {d, d + 100, d + 300};
    void* srcs[3] = {s + 50, s + 7, s + 900};
    size_t sizes[3] = {60, 100, 1}, first[2] = {0, 2}, failed = 9;
    cudaMemcpyAttributes how[2] = {};
    how[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    how[1].srcAccessOrder = cudaMemcpySrcAccessOrderAny;
    OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, how, first, 2, &failed, stream()));
  };
  everywhere("cudaMemcpyBatchAsync", 1000, copy, [](unsigned char* d, unsigned char* s) {
    memcpy(d, s + 50, 60);
    memcpy(d + 100, s + 7, 100);
    memcpy(d + 300, s + 900, 1);
  });
  Memory device(DEVICE, 64, 1);
  void *dst = device.data, *src = device.data + 32;
  size_t size = 0, first = 0, failed = 9;
  cudaMemcpyAttributes how = {};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(&dst, &src, &size, 1, &how, &first, 1, &failed, stream()));
}

CASE(fills) {
  for (Kind kind : {DEVICE, PINNED, MANAGED}) {
    Memory m(kind, 4096, 4);
    CUdeviceptr p = (CUdeviceptr)m.data;
    auto word = [&](size_t at, unsigned value, int bytes) { memcpy(&m.want[at], &value, bytes); };
    OK(cudaMemset(m.data + 1, 0x1aa, 30));
    memset(&m.want[1], 0xaa, 30);
    OK(cudaMemset2DAsync(m.data + 64, 32, 0x17, 9, 5, stream()));
    for (int y = 0; y < 5; y++) memset(&m.want[64 + y * 32], 0x17, 9);
    OK(cudaMemset3D(make_cudaPitchedPtr(m.data + 512, 16, 16, 4), 0x2f, make_cudaExtent(7, 3, 2)));
    for (int z = 0; z < 2; z++)
      for (int y = 0; y < 3; y++) memset(&m.want[512 + (z * 4 + y) * 16], 0x2f, 7);
    EXPECT(cuMemsetD16Async(p + 1024, 0xbeef, 50, stream()) == CUDA_SUCCESS);
    for (int i = 0; i < 50; i++) word(1024 + i * 2, 0xbeef, 2);
    EXPECT(cuMemsetD32(p + 1200, 0xdeadbeef, 33) == CUDA_SUCCESS);
    for (int i = 0; i < 33; i++) word(1200 + i * 4, 0xdeadbeef, 4);
    EXPECT(cuMemsetD2D32(p + 2048, 64, 0x01020304, 5, 6) == CUDA_SUCCESS);
    for (int y = 0; y < 6; y++)
      for (int i = 0; i < 5; i++) word(2048 + y * 64 + i * 4, 0x01020304, 4);
    EXPECT(cuMemsetD2D16Async(p + 3072, 32, 0x55aa, 3, 4, stream()) == CUDA_SUCCESS);
    for (int y = 0; y < 4; y++)
      for (int i = 0; i < 3; i++) word(3072 + y * 32 + i * 2, 0x55aa, 2);
    OK(cudaDeviceSynchronize());
    m.check("fill");
  }
}

// Takes a while, so that what comes behind it is enqueued before it has ended, then changes every byte.
__global__ void change_late(unsigned char* data, int size, int turns) {
  for (int i = 0; i < turns; i++) __threadfence();
  for (int i = threadIdx.x; i < size; i += blockDim.x) data[i] += 7;
}

static void change(Memory& m, int size, int turns) {
  unsigned char* data = m.data;
  if (m.kind == REGISTERED) OK(cudaHostGetDevicePointer((void**)&data, m.data, 0));
  change_late<<<1, 64, 0, stream()>>>(data, size, turns);
  for (int i = 0; i < size; i++) m.want[i] += 7;
}

// A kernel, a copy of what it wrote, and a kernel that changes both sides: by every unit that the runtime's own kernels move, and none.
CASE(copies_between_kernels) {
  static const struct { size_t to, from, count; } all[] = {{0, 0, 8}, {32, 16, 1600}, {4, 12, 1204}, {3, 5, 77}, {1, 0, 20001}, {16, 0, 40000}, {0, 32, 65536},
                                                           {0, 16, 65552}, {4, 12, 20020}, {3, 5, 9001}};
  for (int to = 0; to < KINDS; to++)
    for (int from = 0; from < KINDS; from++)
      for (auto& c : all) {
        int size = (int)(c.count + 64);
        Memory dst((Kind)to, size, 1), src((Kind)from, size, 2);
        OK(cudaDeviceSynchronize());
        if (from != PAGEABLE) change(src, size, 2000);
        OK(cudaMemcpyAsync(dst.data + c.to, src.data + c.from, c.count, cudaMemcpyDefault, stream()));
        memcpy(&dst.want[c.to], &src.want[c.from], c.count);
        if (from != PAGEABLE) change(src, size, 1);
        if (to != PAGEABLE) change(dst, size, 1);
        OK(cudaStreamSynchronize(stream()));
        dst.check("a copy between kernels");
        src.check("the source of a copy between kernels");
      }
}

CASE(fills_between_kernels) {
  static const struct { size_t at, count; unsigned element; } all[] = {{0, 8, 4}, {16, 1600, 1}, {4, 300, 4}, {8, 30, 2}, {2, 50, 2}, {3, 77, 1}, {0, 40000, 2}, {4, 5003, 4}, {3, 9001, 1}};
  for (auto& f : all) {
    int size = (int)(f.at + f.count * f.element + 32);
    Memory m(DEVICE, size, 3);
    CUdeviceptr at = (CUdeviceptr)m.data + f.at;
    const unsigned value = 0x5a17c3e9;
    OK(cudaDeviceSynchronize());
    change(m, size, 2000);
    if (f.element == 1) EXPECT(cuMemsetD8Async(at, (unsigned char)value, f.count, stream()) == CUDA_SUCCESS);
    if (f.element == 2) EXPECT(cuMemsetD16Async(at, (unsigned short)value, f.count, stream()) == CUDA_SUCCESS);
    if (f.element == 4) EXPECT(cuMemsetD32Async(at, value, f.count, stream()) == CUDA_SUCCESS);
    for (size_t i = 0; i < f.count; i++) memcpy(&m.want[f.at + i * f.element], &value, f.element);
    change(m, size, 1);
    OK(cudaStreamSynchronize(stream()));
    m.check("a fill between kernels");
  }
}

// So long that work-items go more than one round.
CASE(long_copies_and_fills_behind_a_kernel) {
  const size_t count = (4 << 20) + 36, size = count + 64;
  for (size_t at : {4, 16}) {
    Memory dst(DEVICE, size, 1), src(DEVICE, size, 2), filled(DEVICE, size, 3);
    OK(cudaDeviceSynchronize());
    change(src, 64, 2000);
    OK(cudaMemcpyAsync(dst.data + at, src.data + 16, count, cudaMemcpyDeviceToDevice, stream()));
    memcpy(&dst.want[at], &src.want[16], count);
    change(src, 64, 1);
    OK(cudaMemsetAsync(filled.data + at, 0x5c, count, stream()));
    memset(&filled.want[at], 0x5c, count);
    change(filled, 64, 1);
    OK(cudaStreamSynchronize(stream()));
    dst.check("a long copy");
    src.check("the source of a long copy");
    filled.check("a long fill");
  }
}

// What the processor moves itself: a few bytes, of a stream at rest.
CASE(a_few_bytes) {
  Memory m(DEVICE, 8192, 4), pinned(PINNED, 4096, 5);
  for (size_t count : {1, 2, 4, 7, 8, 16, 17, 100, 4096})
    for (size_t at : {0, 1, 4, 8, 4000}) {
      OK(cudaMemcpy(m.data + at, pinned.data + 4096 - count, count, cudaMemcpyDefault));
      memcpy(&m.want[at], &pinned.want[4096 - count], count);
      change_late<<<1, 64, 0, stream()>>>(m.data, 8192, 1);
      OK(cudaStreamSynchronize(stream()));
      for (auto& byte : m.want) byte += 7;
      std::vector<unsigned char> pageable(count, 0x31), got(count);
      OK(cudaMemcpy(got.data(), m.data + at, count, cudaMemcpyDeviceToHost));
      EXPECT(!memcmp(got.data(), &m.want[at], count));
      OK(cudaMemcpyAsync(m.data + at, pageable.data(), count, cudaMemcpyHostToDevice, stream()));
      memcpy(&m.want[at], pageable.data(), count);
      OK(cudaStreamSynchronize(stream()));
      m.check("a few bytes");
    }
}

CASE(overlapping_runs_of_a_device_move_like_memmove_on_the_host) {
  for (Kind kind : {PINNED, PAGEABLE, MANAGED}) {
    Memory m(kind, 1000, 5);
    OK(cudaMemcpy(m.data + 10, m.data, 900, cudaMemcpyHostToHost));
    memmove(&m.want[10], &m.want[0], 900);
    m.check("overlap");
  }
}

__device__ int table[64];
__constant__ int fixed[16];
__global__ void read_fixed(int* out) { out[threadIdx.x] = fixed[threadIdx.x] + table[threadIdx.x]; }

CASE(symbols) {
  std::vector<int> values(64), back(64), sum(16);
  for (int i = 0; i < 64; i++) values[i] = i * 3 + 1;
  OK(cudaMemcpyToSymbol(table, values.data(), 256));
  OK(cudaMemcpyToSymbolAsync(fixed, values.data() + 8, 32, 16, cudaMemcpyHostToDevice, stream()));
  OK(cudaMemcpyToSymbolAsync(fixed, values.data(), 16, 0, cudaMemcpyHostToDevice, stream()));
  OK(cudaMemcpyToSymbolAsync(fixed, values.data() + 20, 16, 48, cudaMemcpyHostToDevice, stream()));
  OK(cudaStreamSynchronize(stream()));
  OK(cudaMemcpyFromSymbol(back.data(), table, 128, 64));
  for (int i = 0; i < 32; i++) EXPECT(back[i] == values[16 + i]);
  Device<int> out(16);
  read_fixed<<<1, 16>>>(out.data);
  sum = out.host();
  for (int i = 0; i < 16; i++) {
    int constant = i < 4 ? values[i] : i < 12 ? values[8 + i - 4] : values[20 + i - 12];
    EXPECT(sum[i] == constant + values[i]);
  }
}

CASE(advice_about_managed_memory_is_remembered) {
  Memory m(MANAGED, 4096, 6);
  int value = -7;
  OK(cudaMemAdvise(m.data, 4096, cudaMemAdviseSetReadMostly, 0));
  OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, m.data, 4096));
  EXPECT(value == 1);
  OK(cudaMemAdvise(m.data, 4096, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
  OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributePreferredLocation, m.data, 4096));
  EXPECT(value == cudaCpuDeviceId);
  OK(cudaMemPrefetchAsync(m.data, 4096, 0, stream()));
  OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, m.data, 4096));
  EXPECT(value == 0);
  OK(cudaStreamAttachMemAsync(stream(), m.data, 0, cudaMemAttachGlobal));
  m.check("advice");
}

CASE(stream_attributes_read_back) {
  cudaStream_t other;
  OK(cudaStreamCreate(&other));
  cudaStreamAttrValue value = {};
  OK(cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &value));
  EXPECT(value.syncPolicy == cudaSyncPolicyAuto);
  value.syncPolicy = cudaSyncPolicyYield;
  OK(cudaStreamSetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &value));
  OK(cudaStreamCopyAttributes(stream(), other));
  OK(cudaStreamGetAttribute(stream(), cudaStreamAttributeSynchronizationPolicy, &value));
  EXPECT(value.syncPolicy == cudaSyncPolicyYield);
  OK(cudaStreamDestroy(other));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
