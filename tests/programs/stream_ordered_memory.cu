// Stream-ordered memory: who gets freed memory again and when, checked by what kernels find in it, and what pools hold.
//
// A stream is held back by a host function that waits for a flag; memory that its later work still uses must not be given
// to anybody whose work could run before.
#include "cases.h"

#include <atomic>
#include <thread>

__global__ void fill(unsigned* to, unsigned value, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) to[i] = value + i;
}

// Adds the number of words that differ from what `fill` wrote.
__global__ void check(const unsigned* from, unsigned value, size_t count, unsigned* wrong) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    if (from[i] != value + i) atomicAdd(wrong, 1u);
}

static const size_t WORDS = 1 << 16, SIZE = WORDS * 4;

// A stream that does nothing more until it is released.
struct Held {
  cudaStream_t stream;
  std::atomic<bool> go{false};
  Held() {
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(stream, [](void* self) { while (!((Held*)self)->go) std::this_thread::yield(); }, this));
  }
  void release() { go = true; }
  ~Held() {
    release();
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
  }
};

static cudaStream_t stream() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static unsigned* allocate(cudaMemPool_t pool, cudaStream_t stream, size_t size = SIZE) {
  unsigned* memory = nullptr;
  OK(cudaMallocFromPoolAsync((void**)&memory, size, pool, stream));
  return memory;
}

static cudaMemPool_t make_pool(size_t limit = 0) {
  cudaMemPoolProps properties = {};
  cudaMemPool_t pool;
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = limit;
  OK(cudaMemPoolCreate(&pool, &properties));
  uint64_t all = ~0ull;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  return pool;
}

static uint64_t figure(cudaMemPool_t pool, cudaMemPoolAttr which) {
  uint64_t value = 0;
  OK(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

CASE(the_same_stream_has_freed_memory_again_at_once) {
  cudaMemPool_t pool = make_pool();
  Device<unsigned> wrong(1);
  OK(cudaMemset(wrong.data, 0, 4));
  {
    Held held;
    unsigned* first = allocate(pool, held.stream);
    for (unsigned round = 0; round < 8; round++) {
      fill<<<32, 256, 0, held.stream>>>(first, round * 77, WORDS);
      check<<<32, 256, 0, held.stream>>>(first, round * 77, WORDS, wrong.data);
      OK(cudaFreeAsync(first, held.stream));
      cudaPointerAttributes attributes;
      OK(cudaPointerGetAttributes(&attributes, first));
      EXPECT(attributes.type == cudaMemoryTypeUnregistered);
      unsigned* again = allocate(pool, held.stream);
      EXPECT(again == first);
    }
    // A larger piece that was freed is cut.
    OK(cudaFreeAsync(first, held.stream));
    unsigned* half = allocate(pool, held.stream, SIZE / 2);
    unsigned* other_half = allocate(pool, held.stream, SIZE / 2);
    EXPECT(half != other_half);
    fill<<<32, 256, 0, held.stream>>>(half, 1, WORDS / 2);
    fill<<<32, 256, 0, held.stream>>>(other_half, 2, WORDS / 2);
    check<<<32, 256, 0, held.stream>>>(half, 1, WORDS / 2, wrong.data);
    check<<<32, 256, 0, held.stream>>>(other_half, 2, WORDS / 2, wrong.data);
    OK(cudaFreeAsync(half, held.stream));
    OK(cudaFreeAsync(other_half, held.stream));
  }
  EXPECT(wrong.host()[0] == 0);
  EXPECT(figure(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  EXPECT(figure(pool, cudaMemPoolAttrReservedMemHigh) == 32 << 20);
  OK(cudaMemPoolDestroy(pool));
}

CASE(another_stream_has_it_only_when_its_order_allows) {
  cudaMemPool_t pool = make_pool();
  Device<unsigned> wrong(1);
  OK(cudaMemset(wrong.data, 0, 4));
  cudaStream_t other = stream();
  cudaEvent_t before, after;
  OK(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
  {
    Held held;
    unsigned* first = allocate(pool, held.stream);
    fill<<<32, 256, 0, held.stream>>>(first, 5, WORDS);
    OK(cudaEventRecord(before, held.stream));
    check<<<32, 256, 0, held.stream>>>(first, 5, WORDS, wrong.data);
    OK(cudaFreeAsync(first, held.stream));
    OK(cudaEventRecord(after, held.stream));

    // Nothing orders the other stream behind the free.
    unsigned* second = allocate(pool, other);
    EXPECT(second != first);
    fill<<<32, 256, 0, other>>>(second, 6, WORDS);
    OK(cudaStreamSynchronize(other));
    OK(cudaFreeAsync(second, other));
    OK(cudaStreamSynchronize(other));
    OK(cudaMemPoolTrimTo(pool, 0));

    // An event from before the free does not, either.
    second = allocate(pool, other);
    unsigned* apart = allocate(pool, other);
    EXPECT(second != first && apart != first);
    OK(cudaStreamWaitEvent(other, before, 0));
    unsigned* third = allocate(pool, other);
    EXPECT(third != first);

    // One from behind it does: then the memory is the same, and the work comes later.
    OK(cudaStreamWaitEvent(other, after, 0));
    std::vector<unsigned*> more;
    bool found = false;
    // Whatever lies free otherwise is preferred, so the pool's segment is used up.
    for (size_t i = 0; i < (32 << 20) / SIZE && !found; i++) {
      more.push_back(allocate(pool, other));
      found = more.back() == first;
    }
    EXPECT(found);
    EXPECT(figure(pool, cudaMemPoolAttrReservedMemCurrent) == 32 << 20);
    fill<<<32, 256, 0, other>>>(first, 9, WORDS);
    held.release();
    OK(cudaStreamSynchronize(other));
    EXPECT(wrong.host()[0] == 0);
    check<<<32, 256, 0, other>>>(first, 9, WORDS, wrong.data);
    for (unsigned* memory : more) OK(cudaFreeAsync(memory, other));
    for (unsigned* memory : {second, apart, third}) OK(cudaFreeAsync(memory, other));
    OK(cudaStreamSynchronize(other));
  }
  EXPECT(wrong.host()[0] == 0);
  // All is past: anybody has it.
  unsigned* later = allocate(pool, 0, 32 << 20);
  EXPECT(figure(pool, cudaMemPoolAttrReservedMemCurrent) == 32 << 20);
  OK(cudaFreeAsync(later, 0));
  OK(cudaEventDestroy(before));
  OK(cudaEventDestroy(after));
  OK(cudaStreamDestroy(other));
  OK(cudaMemPoolDestroy(pool));
}

CASE(a_full_pool_makes_the_stream_wait) {
  cudaMemPool_t pool = make_pool(32 << 20);
  const size_t whole = 32 << 20, words = whole / 4;
  Device<unsigned> wrong(1);
  OK(cudaMemset(wrong.data, 0, 4));
  cudaStream_t other = stream();
  {
    Held held;
    unsigned* first = allocate(pool, held.stream, whole);
    fill<<<32, 256, 0, held.stream>>>(first, 1, words / 64);
    check<<<32, 256, 0, held.stream>>>(first, 1, words / 64, wrong.data);
    OK(cudaFreeAsync(first, held.stream));
    int off = 0, on = 1;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &off));
    void* none;
    GIVES(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&none, whole, pool, other));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &on));
    unsigned* second = allocate(pool, other, whole);
    EXPECT(second == first);
    fill<<<32, 256, 0, other>>>(second, 2, words / 64);
    GIVES(cudaErrorNotReady, cudaStreamQuery(other));
    held.release();
    OK(cudaStreamSynchronize(other));
    OK(cudaFreeAsync(second, other));
  }
  EXPECT(wrong.host()[0] == 0);
  OK(cudaStreamDestroy(other));
  OK(cudaMemPoolDestroy(pool));
}

CASE(the_legacy_stream_keeps_its_order) {
  cudaMemPool_t pool = make_pool();
  Device<unsigned> wrong(1);
  OK(cudaMemset(wrong.data, 0, 4));
  cudaStream_t blocking, other = stream();
  OK(cudaStreamCreate(&blocking));
  std::atomic<bool> go{false};
  unsigned* first = allocate(pool, 0);
  OK(cudaStreamSynchronize(0));
  OK(cudaLaunchHostFunc(0, [](void* go) { while (!*(std::atomic<bool>*)go) std::this_thread::yield(); }, &go));
  fill<<<32, 256>>>(first, 3, WORDS);
  check<<<32, 256>>>(first, 3, WORDS, wrong.data);
  // Behind the legacy stream's work by CUDA's rule, without an event.
  OK(cudaFreeAsync(first, blocking));
  unsigned* second = allocate(pool, other);
  EXPECT(second != first);
  fill<<<32, 256, 0, other>>>(second, 4, WORDS);
  OK(cudaStreamSynchronize(other));
  go = true;
  OK(cudaDeviceSynchronize());
  EXPECT(wrong.host()[0] == 0);
  OK(cudaFreeAsync(second, other));
  OK(cudaStreamDestroy(blocking));
  OK(cudaStreamDestroy(other));
  OK(cudaMemPoolDestroy(pool));
}

CASE(memory_goes_back_at_the_threshold) {
  cudaMemPool_t pool = make_pool();
  size_t before, during, after, total;
  OK(cudaDeviceSynchronize());
  OK(cudaMemGetInfo(&before, &total));
  std::vector<unsigned*> memory;
  for (int i = 0; i < 3; i++) memory.push_back(allocate(pool, 0, 32 << 20));
  OK(cudaMemGetInfo(&during, &total));
  EXPECT(before - during >= 96 << 20);
  uint64_t threshold = 64 << 20;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  for (unsigned* one : memory) OK(cudaFreeAsync(one, 0));
  OK(cudaStreamSynchronize(0));
  EXPECT(figure(pool, cudaMemPoolAttrReservedMemCurrent) == 64 << 20);
  OK(cudaMemPoolTrimTo(pool, 0));
  EXPECT(figure(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
  // What a destroyed pool still has in use goes with its last free.
  unsigned* last = allocate(pool, 0);
  OK(cudaMemPoolDestroy(pool));
  GIVES(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
  fill<<<32, 256>>>(last, 1, WORDS);
  OK(cudaFree(last));
  OK(cudaMemGetInfo(&after, &total));
  EXPECT(after == before);
}

CASE(cudamalloc_gets_what_pools_hold_unused) {
  cudaMemPool_t pool = make_pool();
  size_t available, total;
  OK(cudaMemGetInfo(&available, &total));
  unsigned* memory = allocate(pool, 0, available / 2);
  OK(cudaFreeAsync(memory, 0));
  OK(cudaStreamSynchronize(0));
  void* large = nullptr;
  OK(cudaMalloc(&large, available / 4 * 3));
  OK(cudaFree(large));
  OK(cudaMemPoolDestroy(pool));
}

CASE(threads_on_their_own_streams_share_no_byte) {
  cudaMemPool_t pool = make_pool();
  Device<unsigned> wrong(1);
  OK(cudaMemset(wrong.data, 0, 4));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; thread++)
    threads.emplace_back([&, thread] {
      cudaStream_t own = stream();
      std::vector<std::pair<unsigned*, size_t>> live;
      uint32_t random = thread * 7919 + 1;
      unsigned tag = thread << 24;
      for (int step = 0; step < 60; step++) {
        random = random * 1664525 + 1013904223;
        if (live.size() < 6 && (live.empty() || random >> 31)) {
          size_t words = 1 + (random >> 8) % 20000;
          unsigned* memory = allocate(pool, own, words * 4);
          fill<<<4, 64, 0, own>>>(memory, tag + words, words);
          live.push_back({memory, words});
        } else {
          size_t index = (random >> 8) % live.size();
          auto [memory, words] = live[index];
          check<<<4, 64, 0, own>>>(memory, tag + words, words, wrong.data);
          OK(cudaFreeAsync(memory, own));
          live[index] = live.back();
          live.pop_back();
        }
        if (step % 20 == 19) OK(cudaStreamSynchronize(own));
      }
      for (auto [memory, words] : live) {
        check<<<4, 64, 0, own>>>(memory, tag + words, words, wrong.data);
        OK(cudaFreeAsync(memory, own));
      }
      OK(cudaStreamSynchronize(own));
      OK(cudaStreamDestroy(own));
    });
  for (auto& thread : threads) thread.join();
  EXPECT(wrong.host()[0] == 0);
  EXPECT(figure(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  OK(cudaMemPoolTrimTo(pool, 0));
  EXPECT(figure(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
  OK(cudaMemPoolDestroy(pool));
}

CASE(used_bytes_are_exact_however_streams_trade_memory) {
  cudaMemPool_t pool = make_pool();
  cudaStream_t one = stream(), two = stream();
  uint64_t used = 0, high = 0, zero = 0;
  std::vector<std::pair<unsigned*, size_t>> live;
  auto take = [&](cudaStream_t stream, size_t size) {
    live.push_back({allocate(pool, stream, size), (size + 511) / 512 * 512});
    used += live.back().second;
    if (used > high) high = used;
  };
  auto give = [&](cudaStream_t stream, bool in_order) {
    auto [memory, size] = live.back();
    live.pop_back();
    OK(in_order ? cudaFreeAsync(memory, stream) : cudaFree(memory));
    used -= size;
  };
  uint32_t random = 1;
  for (int step = 0; step < 400; step++) {
    random = random * 1664525 + 1013904223;
    cudaStream_t stream = random >> 30 & 1 ? one : two;
    // Equal sizes are taken from what the stream itself has freed, others are cut from what somebody has.
    size_t size = random >> 29 & 1 ? SIZE : 1 + (random >> 8) % 100000;
    if (live.size() < 8 && (live.empty() || random >> 31)) take(stream, size);
    else give(stream, random >> 20 & 7);
    // Asking is no part of most steps: it settles what streams hold.
    if (step % 7 == 0) EXPECT(figure(pool, cudaMemPoolAttrUsedMemCurrent) == used);
    if (step % 11 == 0) EXPECT(figure(pool, cudaMemPoolAttrUsedMemHigh) == high);
    if (step % 50 == 49) {
      OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
      high = used;
    }
  }
  while (!live.empty()) give(one, true);
  EXPECT(figure(pool, cudaMemPoolAttrUsedMemHigh) == high);
  EXPECT(figure(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  OK(cudaStreamDestroy(one));
  OK(cudaStreamDestroy(two));
  OK(cudaMemPoolDestroy(pool));
}

CASE(a_reset_ends_pools_and_their_memory) {
  cudaMemPool_t pool = make_pool(), before, now;
  unsigned* memory = allocate(pool, 0);
  void* of_default = nullptr;
  OK(cudaMallocAsync(&of_default, 1000, 0));
  OK(cudaDeviceGetDefaultMemPool(&before, 0));
  OK(cudaDeviceReset());
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, memory));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  GIVES(cudaErrorInvalidValue, cudaFreeAsync(of_default, 0));
  GIVES(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
  OK(cudaDeviceGetDefaultMemPool(&now, 0));
  EXPECT(now != before);
  OK(cudaMallocAsync(&of_default, 1000, 0));
  OK(cudaFreeAsync(of_default, 0));
}

// Peer access opens no pool. Copies ask for the device that is current, fills for the stream's; calls that name both devices ask nobody.
CASE(another_devices_pool_is_closed_until_it_is_opened) {
  OK(cudaSetDevice(1));
  cudaMemPool_t pool;
  cudaStream_t theirs = stream();
  unsigned *memory, seen[4], before[4] = {9, 8, 7, 6}, words[4] = {1, 2, 3, 4};
  OK(cudaDeviceGetDefaultMemPool(&pool, 1));
  OK(cudaMallocAsync(&memory, SIZE, theirs));
  OK(cudaMemcpyAsync(memory, before, sizeof before, cudaMemcpyDefault, theirs));
  OK(cudaStreamSynchronize(theirs));
  OK(cudaSetDevice(0));
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(1, 0);
  EXPECT(enabled == cudaSuccess || enabled == cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();
  cudaStream_t ours = stream();
  Device<unsigned> here(std::vector<unsigned>(words, words + 4));
  cudaGraph_t graph;
  cudaGraphNode_t node;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtRead};
  GIVES(cudaErrorNotSupported, cudaMemPoolSetAccess(pool, &access, 1));
  for (int round = 0; round < 3; round++) {
    const bool open = round == 1;
    const cudaError_t wanted = open ? cudaSuccess : cudaErrorInvalidValue;
    access.flags = open ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    OK(cudaMemPoolSetAccess(pool, &access, 1));
    for (cudaStream_t s : {ours, theirs}) {
      GIVES(wanted, cudaMemcpyAsync(memory, here.data, sizeof words, cudaMemcpyDefault, s));
      GIVES(wanted, cudaMemcpyAsync(here.data, memory, sizeof words, cudaMemcpyDefault, s));
      GIVES(wanted, cudaMemcpyAsync(memory, words, sizeof words, cudaMemcpyDefault, s));
      GIVES(wanted, cudaMemcpyAsync(memory + 8, memory, sizeof words, cudaMemcpyDefault, s));
      GIVES(wanted, cudaMemcpy2DAsync(memory, 8, here.data, 8, 8, 2, cudaMemcpyDefault, s));
      OK(cudaStreamSynchronize(s));
    }
    GIVES(wanted, cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDefault));
    GIVES(wanted, cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, memory, here.data, sizeof words, cudaMemcpyDefault));
    GIVES(wanted, cudaMemsetAsync(memory + 16, 0x22, 16, ours));
    if (open) {
      check<<<1, 1, 0, ours>>>(memory, 1, 4, here.data + 3);
      OK(cudaStreamSynchronize(ours));
      EXPECT(memcmp(seen, words, sizeof words) == 0 && (here.host() == std::vector<unsigned>{1, 2, 3, 4}));
    }
    // Nothing that was refused has been done.
    OK(cudaSetDevice(1));
    OK(cudaMemcpyAsync(seen, memory, sizeof seen, cudaMemcpyDefault, ours));
    OK(cudaStreamSynchronize(ours));
    EXPECT(memcmp(seen, open ? words : before, sizeof seen) == 0);
    OK(cudaMemsetAsync(memory, 0x11, 16, theirs));
    OK(cudaStreamSynchronize(theirs));
    OK(cudaSetDevice(0));
    OK(cudaMemcpyPeerAsync(here.data, 0, memory, 1, sizeof words, ours));
    OK(cudaStreamSynchronize(ours));
    EXPECT((here.host() == std::vector<unsigned>(4, 0x11111111)));
    OK(cudaMemcpy(here.data, round == 0 ? words : before, sizeof words, cudaMemcpyDefault));
    OK(cudaMemcpyPeerAsync(memory, 1, here.data, 0, sizeof words, ours));
    OK(cudaStreamSynchronize(ours));
    // What the next round expects to find where it is refused.
    OK(cudaMemcpyPeer(memory, 1, here.data, 0, sizeof words));
    OK(cudaDeviceSynchronize());
  }
  OK(cudaFreeAsync(memory, theirs));
  OK(cudaStreamSynchronize(theirs));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(ours));
  OK(cudaStreamDestroy(theirs));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
