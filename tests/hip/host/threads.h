// The threads of a work-group as fibres of one CPU thread, so that barriers and wave operations work. Work-groups run one after another.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define HIP_DYNAMIC_SHARED(type, name) type *name = (type *)host_shared.data();

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

enum { HOST_WAVE = 64, HOST_STACK = 64 << 10 };

struct HostThread {
    ucontext_t context;
    std::vector<char> stack;
    dim3 index;
    bool ended = false;
    uint64_t barriers = 0; // how many barriers this thread has reached
    uint64_t waves = 0;    // how many operations of its wave
    uint64_t slot[2] = {};
};

inline std::vector<HostThread> host_threads;
inline std::vector<char> host_shared;
inline ucontext_t host_scheduler;
inline size_t host_current = 0;
inline std::function<void()> host_kernel;
inline dim3 blockIdx, blockDim, gridDim, threadIdx;
static const int warpSize = HOST_WAVE;

inline void host_yield() { swapcontext(&host_threads[host_current].context, &host_scheduler); }

// Waits until all of [first, last) that have not ended reached the same count.
inline void host_meet(uint64_t HostThread::*count, size_t first, size_t last)
{
    uint64_t mine = ++(host_threads[host_current].*count);
    for (bool all = false; !all;) {
        all = true;
        for (size_t i = first; i < last; i++) all &= host_threads[i].ended || host_threads[i].*count >= mine;
        if (!all) host_yield();
    }
}

inline void host_entry()
{
    host_kernel();
    host_threads[host_current].ended = true;
    host_yield();
}

inline void host_run(dim3 grid, dim3 block, size_t shared, std::function<void()> kernel)
{
    size_t threads = (size_t)block.x * block.y * block.z;
    gridDim = grid, blockDim = block, host_kernel = kernel;
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; b++) {
        blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
        host_shared.assign(shared + 1, 0);
        host_threads.resize(threads);
        for (size_t i = 0; i < threads; i++) {
            HostThread &t = host_threads[i];
            t.stack.resize(HOST_STACK);
            t.index = dim3(i % block.x, i / block.x % block.y, i / block.x / block.y);
            t.ended = false, t.barriers = t.waves = 0;
            getcontext(&t.context);
            t.context.uc_stack.ss_sp = t.stack.data();
            t.context.uc_stack.ss_size = t.stack.size();
            t.context.uc_link = nullptr;
            makecontext(&t.context, host_entry, 0);
        }
        for (bool running = true; running;) {
            running = false;
            for (host_current = 0; host_current < threads; host_current++) {
                HostThread &t = host_threads[host_current];
                if (t.ended) continue;
                threadIdx = t.index;
                swapcontext(&host_scheduler, &t.context);
                running |= !t.ended;
            }
        }
    }
}

inline void __syncthreads() { host_meet(&HostThread::barriers, 0, host_threads.size()); }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline unsigned __lane_id() { return host_current % HOST_WAVE; }

// Each lane gives a value and sees those of its wave.
template <class T, class F> T host_wave(T value, F pick)
{
    size_t first = host_current / HOST_WAVE * HOST_WAVE, last = std::min(first + HOST_WAVE, host_threads.size());
    HostThread &mine = host_threads[host_current];
    unsigned turn = mine.waves % 2; // two slots, so that the next operation's values do not meet this one's readers
    mine.slot[turn] = 0;
    memcpy(&mine.slot[turn], &value, sizeof value);
    host_meet(&HostThread::waves, first, last);
    auto lane = [=](size_t i) {
        T other;
        memcpy(&other, &host_threads[first + i].slot[turn], sizeof other);
        return other;
    };
    return pick(lane, host_current - first, last - first);
}
template <class T> T __shfl(T value, int from, int = HOST_WAVE)
{
    return host_wave(value, [=](auto lane, size_t, size_t) { return lane(from % HOST_WAVE); });
}
template <class T> T __shfl_xor(T value, int mask, int = HOST_WAVE)
{
    return host_wave(value, [=](auto lane, size_t self, size_t) { return lane(self ^ mask); });
}
template <class T> T __shfl_up(T value, unsigned by, int = HOST_WAVE)
{
    return host_wave(value, [=](auto lane, size_t self, size_t) { return lane(self < by ? self : self - by); });
}
template <class T> T __shfl_down(T value, unsigned by, int = HOST_WAVE)
{
    return host_wave(value, [=](auto lane, size_t self, size_t) { return lane(self + by >= HOST_WAVE ? self : self + by); });
}
inline uint64_t __ballot(int predicate)
{
    return host_wave((uint64_t)(predicate != 0), [](auto lane, size_t, size_t lanes) {
        uint64_t mask = 0;
        for (size_t i = 0; i < lanes; i++) mask |= lane(i) << i;
        return mask;
    });
}
inline int __any(int predicate) { return __ballot(predicate) != 0; }
inline int __all(int predicate) { return __ballot(!predicate) == 0; }

template <class T> T host_change(T *at, T value) { T old = *at; *at = value; return old; }
template <class T> T atomicAdd(T *at, T by) { return host_change(at, (T)(*at + by)); }
template <class T> T atomicSub(T *at, T by) { return host_change(at, (T)(*at - by)); }
template <class T> T atomicMin(T *at, T by) { return host_change(at, std::min(*at, by)); }
template <class T> T atomicMax(T *at, T by) { return host_change(at, std::max(*at, by)); }
template <class T> T atomicAnd(T *at, T by) { return host_change(at, *at & by); }
template <class T> T atomicOr(T *at, T by) { return host_change(at, *at | by); }
template <class T> T atomicXor(T *at, T by) { return host_change(at, *at ^ by); }
template <class T> T atomicExch(T *at, T by) { return host_change(at, by); }
template <class T> T atomicCAS(T *at, T compare, T value) { return host_change(at, *at == compare ? value : *at); }
inline unsigned atomicInc(unsigned *at, unsigned limit) { return host_change(at, *at >= limit ? 0 : *at + 1); }
inline unsigned atomicDec(unsigned *at, unsigned limit) { return host_change(at, *at == 0 || *at > limit ? limit : *at - 1); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }
