// What compiled kernels use: LDS, static and dynamic; atomics; wave operations; constants and symbols; arrays of a thread's own; arithmetic.
#include "common.h"

enum { N = 4096, BLOCK = 256 };

__global__ void reverse(const uint32_t *in, uint32_t *out)
{
    __shared__ uint32_t tile[BLOCK];
    tile[threadIdx.x] = in[blockIdx.x * BLOCK + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * BLOCK + threadIdx.x] = tile[BLOCK - 1 - threadIdx.x];
}

__global__ void scan(const uint32_t *in, uint32_t *out)
{
    HIP_DYNAMIC_SHARED(uint32_t, sums);
    unsigned i = threadIdx.x;
    sums[i] = in[blockIdx.x * blockDim.x + i];
    __syncthreads();
    for (unsigned by = 1; by < blockDim.x; by *= 2) {
        uint32_t other = i >= by ? sums[i - by] : 0;
        __syncthreads();
        sums[i] += other;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + i] = sums[i];
}

__global__ void histogram(const uint32_t *in, unsigned *bins, unsigned long long *sum, int *least, unsigned *bits, unsigned *turn)
{
    __shared__ unsigned local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;
    __syncthreads();
    uint32_t value = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&local[value % 64], 1u);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
    atomicAdd(sum, (unsigned long long)value << 20);
    atomicMin(least, (int)value);
    atomicOr(&bits[0], value & 0xff);
    atomicAnd(&bits[1], value | 0xffff0000u);
    atomicXor(&bits[2], value);
    atomicMax(&bits[3], value);
    atomicInc(&turn[0], 1000u);
    atomicDec(&turn[1], 77u);
    for (unsigned seen = bits[4], before; (before = atomicCAS(&bits[4], seen, seen + value)) != seen;) seen = before;
}

__global__ void float_atomics(float *sum, double *wide)
{
    // Small integers: exact in any order.
    atomicAdd(sum, (float)(threadIdx.x % 8));
    atomicAdd(wide, (double)(threadIdx.x % 16) * 0.5);
}

__global__ void wave(const uint32_t *in, uint64_t *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 64;
    int value = (int)in[i];
    uint64_t mix = __ballot(value & 1);
    mix = mix * 31 + (uint32_t)__shfl(value, (lane * 7) % 64);
    mix = mix * 31 + (uint32_t)__shfl_xor(value, 17);
    mix = mix * 31 + (uint32_t)__shfl_up(value, 3);
    mix = mix * 31 + (uint32_t)__shfl_down(value, 5);
    mix = mix * 31 + (unsigned)__any(value % 1000 == 0) * 2 + (unsigned)__all(value != 12345);
    int sum = value % 1000;
    for (int by = 32; by; by /= 2) sum += __shfl_xor(sum, by);
    out[i] = mix * 31 + (uint32_t)sum;
}

__constant__ uint32_t table[256] = {5, 6, 7};
__device__ uint32_t counter;
__device__ uint32_t buffer[N];

__global__ void symbols()
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    buffer[i] = table[i % 256] * 3 + i;
    atomicAdd(&counter, 1u);
}

__global__ void scratch(const uint32_t *in, uint32_t *out)
{
    // Indexed by data, so it cannot live in registers.
    uint32_t mine[40];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 40; k++) mine[k] = in[(i + k * 37) % N];
    for (int k = 0; k < 60; k++) {
        uint32_t a = mine[k % 40] % 40, b = mine[(k * 7 + 3) % 40] % 40;
        uint32_t t = mine[a];
        mine[a] = mine[b] + k;
        mine[b] = t ^ a;
    }
    uint32_t digest = 0;
    for (int k = 0; k < 40; k++) digest = digest * 33 + mine[k];
    out[i] = digest;
}

struct Mixed {
    uint8_t a;
    uint16_t b;
    double c;
    uint32_t d[3];
};

__global__ void arithmetic(const uint32_t *in, uint64_t *out, double *real, float *single, Mixed given)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t a = in[i], b = in[(i + 1) % N] | 1;
    int64_t wide = (int64_t)((uint64_t)a << 32 | b), other = (int64_t)b * -7 - 1;
    uint64_t x = (uint64_t)(wide / other) * 3 + (uint64_t)(wide % other) + a / b + (uint32_t)((int)a % (int)b);
    x ^= (uint64_t)__umulhi(a, b) << 16 ^ (uint64_t)__popc(a) << 3 ^ (uint64_t)__clz(b) ^ (uint64_t)__brev(a);
    x += (uint64_t)__ffs(a) + (uint64_t)__popcll(x) + (uint64_t)((uint64_t)wide * (uint64_t)other >> 5);
    x += given.a + given.b + given.d[0] * given.d[2];
    out[i] = x;
    // Correctly rounded operations only: the same bits everywhere.
    double p = (int)a, q = (int)b;
    real[i] = (p * given.c + q) / (q - given.c);
    float f = (float)(a % 10007), g = (float)(b % 997 + 1);
    single[i] = f * g - f / g;
}

__global__ void geometry(uint32_t *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = blockIdx.x + blockIdx.y * 10 + blockIdx.z * 100 + threadIdx.x * 1000 + threadIdx.y * 10000 +
                                    threadIdx.z * 100000;
}

int main()
{
    auto in = random_vector(N, 77);
    uint32_t *from, *to;
    uint64_t *wide;
    CHECK(hipMalloc(&from, N * 4));
    CHECK(hipMalloc(&to, N * 4));
    CHECK(hipMalloc(&wide, N * 8));
    CHECK(hipMemcpy(from, in.data(), N * 4, hipMemcpyHostToDevice));

    hipLaunchKernelGGL(reverse, dim3(N / BLOCK), dim3(BLOCK), 0, 0, from, to);
    report_device("LDS", to, N);
    hipLaunchKernelGGL(scan, dim3(N / 512), dim3(512), 512 * 4, 0, from, to);
    report_device("dynamic LDS", to, N);

    unsigned *bins;
    CHECK(hipMalloc(&bins, 4096));
    std::vector<unsigned> start(1024, 0);
    start[67] = 0x7fffffff;                                    // least
    start[69] = 0xffffffff;                                    // bits[1]: and
    CHECK(hipMemcpy(bins, start.data(), 4096, hipMemcpyHostToDevice));
    hipLaunchKernelGGL(histogram, dim3(N / BLOCK), dim3(BLOCK), 0, 0, from, bins, (unsigned long long *)(bins + 64),
                       (int *)(bins + 67), bins + 68, bins + 80);
    report_device("atomics", bins, 1024);

    double *real;
    float *single;
    CHECK(hipMalloc(&real, N * 8));
    CHECK(hipMalloc(&single, N * 4));
    CHECK(hipMemset(real, 0, 8));
    CHECK(hipMemset(single, 0, 4));
    hipLaunchKernelGGL(float_atomics, dim3(16), dim3(BLOCK), 0, 0, single, real);
    report_device("float atomics", single, 1);
    report_device("double atomics", real, 1);

    hipLaunchKernelGGL(wave, dim3(N / BLOCK), dim3(BLOCK), 0, 0, from, wide);
    report_device("wave operations", wide, N);

    auto words = random_vector(256, 3);
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(table), words.data() + 3, 253 * 4, 12));
    hipLaunchKernelGGL(symbols, dim3(N / BLOCK), dim3(BLOCK), 0, 0);
    uint32_t count = 0;
    CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), 4));
    report("device symbol", &count, 4);
    uint32_t *address;
    size_t size;
    CHECK(hipGetSymbolAddress((void **)&address, HIP_SYMBOL(buffer)));
    CHECK(hipGetSymbolSize(&size, HIP_SYMBOL(buffer)));
    EXPECT(size == sizeof buffer);
    report_device("constant symbol", address, N);

    hipLaunchKernelGGL(scratch, dim3(N / BLOCK), dim3(BLOCK), 0, 0, from, to);
    report_device("scratch", to, N);

    Mixed given = {200, 60000, 1.75, {11, 12, 13}};
    hipLaunchKernelGGL(arithmetic, dim3(N / BLOCK), dim3(BLOCK), 0, 0, from, wide, real, single, given);
    report_device("integers", wide, N);
    report_device("doubles", real, N);
    report_device("floats", single, N);

    CHECK(hipMemset(to, 0xff, N * 4));
    hipLaunchKernelGGL(geometry, dim3(3, 2, 4), dim3(5, 3, 7), 0, 0, to);
    report_device("geometry", to, N);
    CHECK(hipGetLastError());
    return 0;
}
