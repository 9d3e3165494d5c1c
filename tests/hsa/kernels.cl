// Kernels of kernels.c and faults.c. Built for the bare target: no device library.
__kernel void saxpy(__global float *y, __global const float *x, float a, unsigned n)
{
    unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < n) y[i] = a * x[i] + y[i];
}

// Every work-group sums 256 numbers through LDS and adds the sum to one word.
__kernel void sum(__global unsigned *total, __global const unsigned *x, unsigned n)
{
    __local unsigned part[256];
    unsigned lane = __builtin_amdgcn_workitem_id_x(), i = __builtin_amdgcn_workgroup_id_x() * 256 + lane;
    part[lane] = i < n ? x[i] : 0;
    for (unsigned step = 128; step > 0; step /= 2) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (lane < step) part[lane] += part[lane + step];
    }
    if (lane == 0) __opencl_atomic_fetch_add((__global atomic_uint *)total, part[0], __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

// Spins until the host (or another kernel) writes 1.
__kernel void spin(__global unsigned *flag, __global unsigned *done)
{
    while (__opencl_atomic_load((__global atomic_uint *)flag, __ATOMIC_ACQUIRE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES) != 1)
        __builtin_amdgcn_s_sleep(1);
    if (__builtin_amdgcn_workitem_id_x() == 0)
        __opencl_atomic_store((__global atomic_uint *)done, 1, __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
}

// Writes where the host says, mapped or not.
__kernel void poke(__global unsigned *where, unsigned value)
{
    *where = value;
}

// Adds where the host says, aligned or not.
__kernel void add_at(__global unsigned *where, unsigned value)
{
    __opencl_atomic_fetch_add((__global atomic_uint *)where, value, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

// What a failed assertion ends in: one work-item of the second work-group.
__kernel void trap(__global unsigned *x)
{
    if (__builtin_amdgcn_workgroup_id_x() == 1 && __builtin_amdgcn_workitem_id_x() == 70) __builtin_trap();
    x[__builtin_amdgcn_workitem_id_x()] = 1;
}

// Words that are no instruction.
__kernel void illegal(__global unsigned *x)
{
    *x = 1;
    __asm volatile(".long 0xffffffff");
}

// When the GPU's constant clock says that the kernel runs.
__kernel void clock(__global ulong *first, __global ulong *last, unsigned rounds)
{
    ulong now = __builtin_amdgcn_s_memrealtime();
    *first = now;
    for (unsigned i = 0; i < rounds; i++) {
        ulong next = __builtin_amdgcn_s_memrealtime();
        if (next < now) __builtin_trap();
        now = next;
    }
    *last = now;
}

// An array per work-item that does not fit into registers.
__kernel void scratch(__global unsigned *out, unsigned n)
{
    volatile unsigned part[512];
    unsigned item = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x(), sum = 0;
    for (unsigned i = 0; i < 512; i++) part[i] = item * 3 + i;
    for (unsigned i = 0; i < n; i++) sum += part[i * 7 % 512];
    out[item] = sum;
}

// One wave's plain stores and loads, without and with a fence of their own: for coherence.c.
__kernel void put(__global unsigned *p, ulong value)
{
    p[__builtin_amdgcn_workitem_id_x()] = (unsigned)value;
}

__kernel void put_release(__global unsigned *p, ulong value)
{
    p[__builtin_amdgcn_workitem_id_x()] = (unsigned)value;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
}

__kernel void get(__global unsigned *to, __global const unsigned *from)
{
    to[__builtin_amdgcn_workitem_id_x()] = from[__builtin_amdgcn_workitem_id_x()];
}

__kernel void get_acquire(__global unsigned *to, __global const unsigned *from)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
    to[__builtin_amdgcn_workitem_id_x()] = from[__builtin_amdgcn_workitem_id_x()];
}

// A load that may come from the compute unit's own cache.
static unsigned plain(__global unsigned *p)
{
    return __opencl_atomic_load((__global atomic_uint *)p, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_WORK_GROUP);
}

static unsigned shared_by_all(__global unsigned *p)
{
    return __opencl_atomic_load((__global atomic_uint *)p, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

static void count(__global unsigned *p)
{
    __opencl_atomic_fetch_add((__global atomic_uint *)p, 1, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

// Two work-groups. The first reads word 2 before the second has written it (word 3 keeps that) and after (word 4). Words 0 and
// 1 tell them where the other is.
__kernel void meet(__global unsigned *word, ulong acquire)
{
    if (__builtin_amdgcn_workitem_id_x() != 0) return;
    if (__builtin_amdgcn_workgroup_id_x() == 0) {
        word[3] = plain(word + 2);
        __builtin_amdgcn_s_waitcnt(0);
        count(word);
        while (shared_by_all(word + 1) == 0) __builtin_amdgcn_s_sleep(1);
        if (acquire) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
        word[4] = plain(word + 2);
    } else {
        while (shared_by_all(word) == 0) __builtin_amdgcn_s_sleep(1);
        __opencl_atomic_store((__global atomic_uint *)(word + 2), 7, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
        __builtin_amdgcn_s_waitcnt(0);
        count(word + 1);
    }
}
