// What CUDA C++ programs do on the device: each case runs kernels and compares every element with the same computation on the host.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "cases.h"

static const int kThreads = 128;

__host__ __device__ inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// ---- functions of one thread, evaluated the same way on both sides

template <typename Out, typename In, typename F>
__global__ void map_kernel(Out* out, const In* in, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = f(in[i]);
}

template <typename Out, typename In, typename F>
static std::vector<Out> map(const std::vector<In>& in, F f) {
  Device<In> source(in);
  Device<Out> target(in.size());
  int n = (int)in.size();
  map_kernel<<<(n + kThreads - 1) / kThreads, kThreads>>>(target.data, source.data, n, f);
  return target.host();
}

template <typename Out, typename In, typename F>
static void same(const char* what, const std::vector<In>& in, F f) {
  std::vector<Out> got = map<Out>(in, f);
  for (size_t i = 0; i < in.size(); i++) {
    Out want = f(in[i]);
    if (memcmp(&got[i], &want, sizeof(Out)) != 0) {
      fail("%s: element %zu differs", what, i);
      return;
    }
  }
}

template <typename T, typename F, typename G>
static void near(const char* what, const std::vector<T>& in, double ulps, F device, G host) {
  std::vector<T> got = map<T>(in, device);
  for (size_t i = 0; i < in.size(); i++) {
    T want = host(in[i]);
    if (!close(got[i], want, ulps)) {
      fail("%s(%.17g): %.17g, expected %.17g", what, (double)in[i], (double)got[i], (double)want);
      return;
    }
  }
}

struct Pair64 {
  int64_t a, b;
};

struct Divide {
  __host__ __device__ Pair64 operator()(Pair64 p) const { return {p.a / p.b, p.a % p.b}; }
};
struct DivideUnsigned {
  __host__ __device__ Pair64 operator()(Pair64 p) const {
    uint64_t a = p.a, b = p.b;
    return {(int64_t)(a / b), (int64_t)(a % b)};
  }
};
struct Divide32 {
  __host__ __device__ Pair64 operator()(Pair64 p) const {
    int a = (int)p.a | 1, b = (int)p.b | 1;
    unsigned c = a, d = b;
    return {(int64_t)(b == -1 ? -(int64_t)a : a / b) << 32 | (c / d), (int64_t)(b == -1 ? 0 : a % b) << 32 | (c % d)};
  }
};
struct Shifts {
  __host__ __device__ Pair64 operator()(Pair64 p) const {
    unsigned s = p.b & 63;
    return {(p.a << s) ^ (p.a >> (63 - s)), (int64_t)(((uint64_t)p.a >> s) * 0x9e3779b97f4a7c15ull + (uint64_t)p.b * (uint64_t)p.a)};
  }
};

CASE(integers_64) {
  std::vector<Pair64> in;
  int64_t edges[] = {1, 2, 3, 7, 10, 1000000007, 0x7fffffff, 0x80000000ll, 0xffffffffll, 0x100000000ll, 0x123456789abcdefll, INT64_MAX,
                     -1, -2, -3, -10, -0x80000000ll, -0x123456789abcdefll, INT64_MIN};
  for (int64_t a : edges)
    for (int64_t b : edges)
      if (!(a == INT64_MIN && b == -1)) in.push_back({a, b});
  for (uint32_t i = 0; i < 600; i++) {
    int64_t a = (int64_t)(((uint64_t)mix(i) << 32) | mix(i + 77777)), b = (int64_t)(((uint64_t)mix(i + 99) << 32) | mix(i * 3)) >> (i % 63);
    in.push_back({a, b ? b : 5});
  }
  same<Pair64>("signed division", in, Divide());
  same<Pair64>("unsigned division", in, DivideUnsigned());
  same<Pair64>("32 bit division", in, Divide32());
  same<Pair64>("shifts and products", in, Shifts());
}

struct BitTricks {
  __host__ __device__ uint4 operator()(uint32_t x) const {
#ifdef __CUDA_ARCH__
    return make_uint4(__popc(x) | __clz(x) << 8 | __ffs(x) << 16, __brev(x), __byte_perm(x, ~x, 0x4261), __funnelshift_l(x, x * 3, x & 31));
#else
    uint32_t reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
    uint8_t bytes[8];
    uint32_t y = ~x;
    memcpy(bytes, &x, 4);
    memcpy(bytes + 4, &y, 4);
    uint64_t wide = (uint64_t)(x * 3) << 32 | x;
    uint32_t high = (uint32_t)(wide << (x & 31) >> 32);
    return make_uint4(__builtin_popcount(x) | (x ? __builtin_clz(x) : 32) << 8 | __builtin_ffs(x) << 16, reversed,
                      bytes[1] | bytes[6] << 8 | bytes[2] << 16 | bytes[4] << 24, high);
#endif
  }
};
struct WideProducts {
  __host__ __device__ uint4 operator()(uint32_t x) const {
#ifdef __CUDA_ARCH__
    uint64_t wide = (uint64_t)x << 32 | (x * 77);
    uint64_t high = __umul64hi(wide, wide ^ 0x1234567890ull);
    return make_uint4(__umulhi(x, x * 5), (uint32_t)__mulhi((int)x, (int)(x * 7)), (uint32_t)high, (uint32_t)(high >> 32));
#else
    uint64_t wide = (uint64_t)x << 32 | (x * 77);
    uint64_t high = (uint64_t)((unsigned __int128)wide * (wide ^ 0x1234567890ull) >> 64);
    return make_uint4((uint64_t)x * (x * 5) >> 32, (uint32_t)((int64_t)(int)x * (int)(x * 7) >> 32), (uint32_t)high, (uint32_t)(high >> 32));
#endif
  }
};
struct Narrow {
  __host__ __device__ uint4 operator()(uint32_t x) const {
    int8_t a = (int8_t)x, b = (int8_t)(x >> 8);
    int16_t c = (int16_t)(x >> 16), d = (int16_t)(a * b);
    uint8_t e = (uint8_t)(x + 200);
    d += (int16_t)(c * 3);
    a >>= 2;
    e <<= 1;
    return make_uint4((uint32_t)(int32_t)d, (uint32_t)(a * c), e, (uint32_t)(int16_t)(b - c) / 3u);
  }
};

CASE(bits) {
  std::vector<uint32_t> in = {0, 1, 2, 0x80000000u, 0xffffffffu, 0x7fffffffu};
  for (uint32_t i = 0; i < 500; i++) in.push_back(mix(i) >> (i % 31));
  same<uint4>("bit functions", in, BitTricks());
  same<uint4>("high products", in, WideProducts());
  same<uint4>("narrow integers", in, Narrow());
}

// ---- floating point

template <typename T>
static std::vector<T> reals(double low, double high, int n) {
  std::vector<T> values;
  for (int i = 0; i < n; i++) values.push_back((T)(low + (high - low) * ((double)mix(i * 7 + 1) / 4294967296.0)));
  return values;
}

#define NEAR(T, ULPS, VALUES, EXPRESSION) \
  near<T>(#EXPRESSION " as " #T, VALUES, ULPS, [] __device__(T x) -> T { return EXPRESSION; }, [](T x) -> T { return EXPRESSION; })

CASE(double_math) {
  auto wide = reals<double>(-1000, 1000, 300), unit = reals<double>(-1, 1, 300), positive = reals<double>(1e-9, 5000, 300);
  wide.insert(wide.end(), {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-310, 1e300, 700.0, -745.0});
  positive.insert(positive.end(), {0.0, 1.0, INFINITY, 5e-324, 1e-310, 1.7e308});
  NEAR(double, 2, wide, sin(x));
  NEAR(double, 2, wide, cos(x));
  NEAR(double, 3, wide, tan(x));
  NEAR(double, 2, wide, exp(x));
  NEAR(double, 2, wide, exp2(x));
  NEAR(double, 2, wide, expm1(x));
  NEAR(double, 2, wide, atan(x));
  NEAR(double, 2, wide, tanh(x));
  NEAR(double, 2, wide, cbrt(x));
  NEAR(double, 2, wide, erf(x));
  NEAR(double, 3, unit, asin(x));
  NEAR(double, 3, unit, acos(x));
  NEAR(double, 2, positive, log(x));
  NEAR(double, 2, positive, log2(x));
  NEAR(double, 2, positive, log10(x));
  NEAR(double, 2, positive, log1p(x));
  NEAR(double, 0, positive, sqrt(x));
  NEAR(double, 2, positive, pow(x, 1.7));
  NEAR(double, 2, wide, pow(x, 3.0));
  NEAR(double, 0, wide, fmod(x, 3.7));
  NEAR(double, 0, wide, 1.0 / x);
  NEAR(double, 0, wide, x / 3.3);
  NEAR(double, 0, wide, fma(x, x, -x));
  NEAR(double, 0, wide, floor(x) + ceil(x) + trunc(x) + rint(x) + round(x));
  NEAR(double, 2, wide, hypot(x, 3.0));
  NEAR(double, 2, wide, atan2(x, 2.0));
  NEAR(double, 0, wide, copysign(ldexp(x, 3), -1.0));
  NEAR(double, 4, positive, tgamma(x / 100.0));
  NEAR(double, 0, wide, fmin(x, 0.5) + fmax(x, 0.25));
  NEAR(double, 0, wide, (double)(int)fmin(fmax(x, -1e9), 1e9) + (double)(float)x);
}

CASE(float_math) {
  auto wide = reals<float>(-1000, 1000, 300), unit = reals<float>(-1, 1, 300), positive = reals<float>(1e-9, 5000, 300);
  wide.insert(wide.end(), {0.0f, -0.0f, 1.0f, INFINITY, -INFINITY, NAN, 1e-40f, 1e30f, 88.5f, 1e6f});
  positive.insert(positive.end(), {0.0f, 1.0f, INFINITY, 1e-45f, 1e-40f, 3e38f});
  NEAR(float, 3, wide, sinf(x));
  NEAR(float, 3, wide, cosf(x));
  NEAR(float, 5, wide, tanf(x));
  NEAR(float, 3, wide, expf(x));
  NEAR(float, 3, wide, atanf(x));
  NEAR(float, 3, wide, tanhf(x));
  NEAR(float, 3, wide, cbrtf(x));
  NEAR(float, 5, unit, asinf(x));
  NEAR(float, 5, unit, acosf(x));
  NEAR(float, 3, positive, logf(x));
  NEAR(float, 3, positive, log2f(x));
  NEAR(float, 0, positive, sqrtf(x));
  NEAR(float, 9, positive, powf(x, 1.7f));
  NEAR(float, 0, wide, 1.0f / x);
  NEAR(float, 0, wide, x / 3.3f);
  NEAR(float, 0, wide, fmodf(x, 3.7f));
  NEAR(float, 0, wide, fmaf(x, x, -x));
  NEAR(float, 0, wide, floorf(x) + ceilf(x) + truncf(x) + rintf(x) + roundf(x));
  NEAR(float, 0, wide, remainderf(x, 2.5f));
}

// The approximate functions promise little near 0 and far out, so they are held to an absolute bound.
struct Fast {
  __host__ __device__ float operator()(float x) const {
#ifdef __CUDA_ARCH__
    return __sinf(x) + __expf(x) * __fdividef(1.0f, x) + __frsqrt_rn(x) + __powf(x, 0.5f) + __logf(x);
#else
    return std::sin(x) + std::exp(x) / x + 1 / std::sqrt(x) + std::sqrt(x) + std::log(x);
#endif
  }
};

CASE(fast_math) {
  auto in = reals<float>(0.5, 3, 300);
  auto got = map<float>(in, Fast());
  for (size_t i = 0; i < in.size(); i++)
    if (std::fabs(got[i] - Fast()(in[i])) > 1e-4f) return fail("fast functions of %g: %g, expected %g", in[i], got[i], Fast()(in[i]));
}

struct Rounded {
  __host__ __device__ Pair64 operator()(double x) const {
#ifdef __CUDA_ARCH__
    return {(int64_t)__double2ll_rn(x) ^ (int64_t)__double2int_rd(x), (int64_t)(unsigned)__float2uint_ru((float)fabs(x)) << 32 | (uint32_t)__float_as_int(__double2float_rz(x))};
#else
    float narrow = (float)x;
    if (std::fabs((double)narrow) > std::fabs(x)) narrow = std::nextafter(narrow, 0.0f);
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    return {(int64_t)std::nearbyint(x) ^ (int64_t)(int)std::floor(x), (int64_t)(unsigned)std::ceil((float)std::fabs(x)) << 32 | bits};
#endif
  }
};

CASE(conversions) {
  auto in = reals<double>(-100000, 100000, 400);
  in.insert(in.end(), {0.5, 1.5, 2.5, -0.5, -1.5, 0.0, 65504.0, 1e-30});
  same<Pair64>("roundings", in, Rounded());
}

// ---- half precision

__global__ void half_kernel(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half h = __float2half(in[i]);
  __half2 two = __halves2half2(h, __hmul(h, __float2half(0.5f)));
  two = __hfma2(two, two, __float2half2_rn(1.0f));
  __nv_bfloat16 b = __float2bfloat16(in[i]);
  out[4 * i] = __low2float(two);
  out[4 * i + 1] = __high2float(two);
  out[4 * i + 2] = __bfloat162float(__hadd(b, __float2bfloat16(1.5f)));
  out[4 * i + 3] = __half2float(hsqrt(__habs(h))) + (__hlt(h, __float2half(0.25f)) ? 8.0f : 0.0f);
}

static float round_bits(float x, int mantissa) {
  int exponent;
  float fraction = std::frexp(x, &exponent);
  return std::ldexp((float)std::nearbyint(std::ldexp(fraction, mantissa)), exponent - mantissa);
}

CASE(half_precision) {
  auto in = reals<float>(-4, 4, 300);
  Device<float> source(in), target(in.size() * 4);
  half_kernel<<<3, 128>>>(target.data, source.data, (int)in.size());
  auto got = target.host();
  for (size_t i = 0; i < in.size(); i++) {
    float h = round_bits(in[i], 11), half = round_bits(h * 0.5f, 11), b = round_bits(in[i], 8);
    float want[4] = {round_bits(std::fma(h, h, 1.0f), 11), round_bits(std::fma(half, half, 1.0f), 11), round_bits(b + 1.5f, 8),
                     round_bits(std::sqrt(std::fabs(h)), 11) + (h < 0.25f ? 8.0f : 0.0f)};
    for (int k = 0; k < 4; k++)
      if (std::fabs(got[4 * i + k] - want[k]) > (k == 3 ? 0.002f : 0.0f))
        return fail("half operation %d of %g: %g, expected %g", k, in[i], got[4 * i + k], want[k]);
  }
}

// ---- memory spaces

__constant__ int constant_table[64];
__device__ int device_counter = 42;
__device__ float device_array[256];
__device__ int* device_pointer = &device_counter;
__managed__ int managed_unused;

__global__ void spaces_kernel(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = constant_table[i % 64] + constant_table[threadIdx.x / 32] + *device_pointer;
  atomicAdd(&device_counter, 0);
  device_array[i % 256] = (float)i;
}

CASE(variables) {
  int table[64];
  for (int i = 0; i < 64; i++) table[i] = i * i - 7;
  OK(cudaMemcpyToSymbol(constant_table, table, sizeof table));
  int seven = 7, back = 0;
  OK(cudaMemcpyFromSymbol(&back, device_counter, sizeof back));
  EXPECT(back == 42);
  OK(cudaMemcpyToSymbol(device_counter, &seven, sizeof seven));
  Device<int> out(256);
  spaces_kernel<<<2, 128>>>(out.data);
  auto got = out.host();
  for (int i = 0; i < 256; i++)
    if (got[i] != table[i % 64] + table[i % 128 / 32] + 7) return fail("element %d: %d", i, got[i]);
  float array[256];
  OK(cudaMemcpyFromSymbol(array, device_array, sizeof array));
  for (int i = 0; i < 256; i++) EXPECT(array[i] == (float)i);
  float two[2] = {-1, -2};
  OK(cudaMemcpyToSymbol(device_array, two, sizeof two, 10 * sizeof(float)));
  void* address = nullptr;
  size_t size = 0;
  OK(cudaGetSymbolAddress(&address, device_array));
  OK(cudaGetSymbolSize(&size, device_array));
  EXPECT(size == sizeof array);
  OK(cudaMemcpy(array, address, sizeof array, cudaMemcpyDefault));
  EXPECT(array[9] == 9 && array[10] == -1 && array[11] == -2 && array[12] == 12);
}

template <int N>
__global__ void __launch_bounds__(N) reverse_kernel(int* data) {
  __shared__ int tile[N];
  extern __shared__ char dynamic[];
  int* second = reinterpret_cast<int*>(dynamic);
  tile[threadIdx.x] = data[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  second[threadIdx.x] = tile[N - 1 - threadIdx.x] * 2;
  __syncthreads();
  data[blockIdx.x * N + threadIdx.x] = second[threadIdx.x ^ 1];
}

CASE(shared_memory) {
  for (int blocks : {1, 5}) {
    std::vector<int> in(blocks * 256);
    for (size_t i = 0; i < in.size(); i++) in[i] = mix(i) & 0xffff;
    Device<int> data(in);
    reverse_kernel<256><<<blocks, 256, 256 * sizeof(int)>>>(data.data);
    auto got = data.host();
    for (size_t i = 0; i < in.size(); i++)
      if (got[i] != in[i / 256 * 256 + 255 - (i % 256 ^ 1)] * 2) return fail("element %zu", i);
  }
}

__global__ void big_shared_kernel(int* out, int words) {
  extern __shared__ int words_of_block[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) words_of_block[i] = i * 3;
  __syncthreads();
  int sum = 0;
  for (int i = threadIdx.x; i < words; i += blockDim.x) sum += words_of_block[words - 1 - i];
  atomicAdd(out, sum);
}

CASE(shared_memory_48K) {
  Device<int> out(std::vector<int>{0});
  int words = 48 * 1024 / 4;
  big_shared_kernel<<<1, 256, words * 4>>>(out.data, words);
  EXPECT(out.host()[0] == 3 * (words * (words - 1) / 2));
  GIVES(cudaErrorInvalidValue, (big_shared_kernel<<<1, 256, 1 << 20>>>(out.data, 0), cudaGetLastError()));
}

__global__ void local_kernel(int* out, const int* order) {
  int stack[40];
  for (int i = 0; i < 40; i++) stack[i] = i * threadIdx.x;
  for (int i = 0; i < 40; i++) {
    int a = order[i] % 40, b = order[i + 40] % 40, t = stack[a];
    stack[a] = stack[b];
    stack[b] = t + 1;
  }
  int sum = 0;
  for (int i = 0; i < 40; i++) sum = sum * 31 + stack[i];
  out[threadIdx.x] = sum;
}

CASE(local_memory) {
  std::vector<int> order(80);
  for (int i = 0; i < 80; i++) order[i] = mix(i) & 1023;
  Device<int> o(order), out(96);
  local_kernel<<<1, 96>>>(out.data, o.data);
  auto got = out.host();
  for (int thread = 0; thread < 96; thread++) {
    int stack[40], sum = 0;
    for (int i = 0; i < 40; i++) stack[i] = i * thread;
    for (int i = 0; i < 40; i++) {
      int a = order[i] % 40, b = order[i + 40] % 40, t = stack[a];
      stack[a] = stack[b];
      stack[b] = t + 1;
    }
    for (int i = 0; i < 40; i++) sum = (int)((unsigned)sum * 31u + (unsigned)stack[i]);
    if (got[thread] != sum) return fail("thread %d: %d, expected %d", thread, got[thread], sum);
  }
}

// ---- calls

__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion_kernel(unsigned* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

CASE(recursion) {
  Device<unsigned> out(64);
  recursion_kernel<<<1, 64>>>(out.data);
  auto got = out.host();
  unsigned want[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 64; i++)
    if (got[i] != want[i % 12]) return fail("fibonacci(%d): %u", i % 12, got[i]);
}

typedef int (*Operation)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ Operation operations[3] = {add, subtract, multiply};
__global__ void pointers_kernel(int* out) { out[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x, 5); }

CASE(function_pointers) {
  Device<int> out(64);
  pointers_kernel<<<1, 64>>>(out.data);
  auto got = out.host();
  for (int i = 0; i < 64; i++) {
    int want = i % 3 == 0 ? i + 5 : i % 3 == 1 ? i - 5 : i * 5;
    if (got[i] != want) return fail("thread %d: %d, expected %d", i, got[i], want);
  }
}

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area() const override { return 3 * radius * radius; }
};
__global__ void virtual_kernel(float* out) {
  Square square((float)threadIdx.x);
  Circle circle((float)threadIdx.x);
  const Shape* shape = threadIdx.x % 2 ? (const Shape*)&square : (const Shape*)&circle;
  out[threadIdx.x] = shape->area();
}

CASE(virtual_functions) {
  Device<float> out(64);
  virtual_kernel<<<1, 64>>>(out.data);
  auto got = out.host();
  for (int i = 0; i < 64; i++)
    if (got[i] != (i % 2 ? (float)(i * i) : (float)(3 * i * i))) return fail("thread %d: %g", i, got[i]);
}

// Objects of shared memory, used by whole blocks of 1024 between barriers.
struct Stack {
  int* data;
  int top;
  __device__ explicit Stack(int* where) : data(where), top(0) {}
  __device__ virtual void push(int value) { data[atomicAdd(&top, 1)] = value; }
  __device__ virtual int pop() { return data[atomicAdd(&top, -1) - 1]; }
};
struct Counter : Stack {
  __device__ explicit Counter(int* where) : Stack(where) {}
  __device__ void push(int value) override { atomicAdd(data, value); }
  __device__ int pop() override { return *data; }
};
__global__ void shared_objects(int* popped, int* sums) {
  __shared__ int data[1024], sum;
  __shared__ alignas(Stack) unsigned char room[sizeof(Stack)], other_room[sizeof(Counter)];
  __shared__ Stack *stack, *counter;
  if (threadIdx.x == 0) {
    sum = 0;
    stack = new (room) Stack(data);
    counter = new (other_room) Counter(&sum);
  }
  __syncthreads();
  stack->push(threadIdx.x);
  counter->push(threadIdx.x);
  __syncthreads();
  popped[blockIdx.x * blockDim.x + threadIdx.x] = stack->pop();
  sums[blockIdx.x * blockDim.x + threadIdx.x] = counter->pop();
}

CASE(virtual_functions_between_barriers) {
  const int threads = 1024, blocks = 2;
  Device<int> popped(threads * blocks), sums(threads * blocks);
  shared_objects<<<blocks, threads>>>(popped.data, sums.data);
  auto got = popped.host(), sum = sums.host();
  for (int block = 0; block < blocks; block++) {
    std::sort(got.begin() + block * threads, got.begin() + (block + 1) * threads);
    for (int i = 0; i < threads; i++) {
      if (got[block * threads + i] != i) return fail("value %d: %d", i, got[block * threads + i]);
      if (sum[block * threads + i] != threads * (threads - 1) / 2) return fail("thread %d: sum %d", i, sum[block * threads + i]);
    }
  }
}

struct Parameters {
  char tag;
  double scale;
  short offsets[5];
  float3 direction;
  struct {
    uint8_t r, g, b;
  } colour;
  int* target;
  uint64_t big[40];
};
__global__ void struct_kernel(Parameters p, char c, short s, double d, Parameters q) {
  int i = threadIdx.x;
  p.target[i] = p.tag + (int)(p.scale * i) + p.offsets[i % 5] + (int)(p.direction.z * 2) + p.colour.b + c * 3 + s + (int)d +
                (int)p.big[i % 40] + (int)q.big[39 - i % 40];
}

CASE(structs_by_value) {
  Device<int> out(100);
  Parameters p{}, q{};
  p.tag = 'x';
  p.scale = 2.5;
  for (int i = 0; i < 5; i++) p.offsets[i] = -i;
  p.direction = make_float3(1, 2, 3.5f);
  p.colour = {1, 2, 250};
  p.target = out.data;
  for (int i = 0; i < 40; i++) p.big[i] = i * 11, q.big[i] = i * 1000;
  struct_kernel<<<1, 100>>>(p, -3, -300, 9.75, q);
  auto got = out.host();
  for (int i = 0; i < 100; i++) {
    int want = 'x' + (int)(2.5 * i) - i % 5 + 7 + 250 - 9 - 300 + 9 + i % 40 * 11 + (39 - i % 40) * 1000;
    if (got[i] != want) return fail("thread %d: %d, expected %d", i, got[i], want);
  }
}

// ---- atomics

struct AtomicResults {
  int sum, maximum, minimum, exchanged, compared;
  unsigned ored, anded, xored, incremented, decremented;
  unsigned long long wide, wide_max;
  float real;
  double real64;
};
__global__ void atomics_kernel(AtomicResults* r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&r->sum, i);
  atomicMax(&r->maximum, i * 7 % 1000);
  atomicMin(&r->minimum, -(i * 3 % 777));
  atomicExch(&r->exchanged, 17);
  int old = r->compared, assumed;
  do {
    assumed = old;
    old = atomicCAS(&r->compared, assumed, assumed + 2);
  } while (assumed != old);
  atomicOr(&r->ored, 1u << (i % 32));
  atomicAnd(&r->anded, ~(1u << (i % 16)));
  atomicXor(&r->xored, i);
  atomicInc(&r->incremented, 99);
  atomicDec(&r->decremented, 49);
  atomicAdd(&r->wide, 1ull << 33);
  atomicMax(&r->wide_max, (unsigned long long)i << 32);
  atomicAdd(&r->real, 0.5f);
  atomicAdd(&r->real64, 0.25);
}

CASE(atomics) {
  AtomicResults zero{};
  zero.anded = ~0u;
  Device<AtomicResults> results(std::vector<AtomicResults>{zero});
  int n = 4 * 160;
  atomics_kernel<<<4, 160>>>(results.data);
  AtomicResults r = results.host()[0];
  int maximum = 0, minimum = 0;
  unsigned xored = 0, incremented = 0, decremented = 0;
  for (int i = 0; i < n; i++) {
    maximum = std::max(maximum, i * 7 % 1000), minimum = std::min(minimum, -(i * 3 % 777)), xored ^= i;
    incremented = incremented >= 99 ? 0 : incremented + 1;
    decremented = decremented == 0 || decremented > 49 ? 49 : decremented - 1;
  }
  EXPECT(r.sum == n * (n - 1) / 2);
  EXPECT(r.maximum == maximum && r.minimum == minimum);
  EXPECT(r.exchanged == 17 && r.compared == 2 * n);
  EXPECT(r.ored == ~0u && r.anded == 0xffff0000u && r.xored == xored);
  EXPECT(r.incremented == incremented && r.decremented == decremented);
  EXPECT(r.wide == (unsigned long long)n << 33 && r.wide_max == (unsigned long long)(n - 1) << 32);
  EXPECT(r.real == n * 0.5f && r.real64 == n * 0.25);
}

__global__ void histogram_kernel(unsigned* bins, const unsigned char* data, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

CASE(histogram) {
  std::vector<unsigned char> data(20000);
  std::vector<unsigned> want(256, 0);
  for (size_t i = 0; i < data.size(); i++) want[data[i] = (unsigned char)(mix(i) >> 13 & mix(i + 1))]++;
  Device<unsigned char> source(data);
  Device<unsigned> bins(std::vector<unsigned>(256, 0));
  histogram_kernel<<<4, 192>>>(bins.data, source.data, (int)data.size());
  EXPECT(bins.host() == want);
}

__device__ int lock_word = 0;
__device__ volatile int guarded = 0;
__global__ void lock_kernel() {
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock_word, 0, 1) == 0) {
      guarded = guarded + 1;
      __threadfence();
      atomicExch(&lock_word, 0);
      done = true;
    }
  }
}

CASE(spin_lock) {
  lock_kernel<<<3, 48>>>();
  int count = 0;
  OK(cudaMemcpyFromSymbol(&count, guarded, sizeof count));
  EXPECT(count == 144);
}

__device__ unsigned blocks_done = 0;
__global__ void last_block_kernel(unsigned* partial, unsigned* total, const unsigned* in, int n) {
  __shared__ unsigned sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&sum, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    unsigned all = 0;
    for (unsigned b = 0; b < gridDim.x; b++) all += ((volatile unsigned*)partial)[b];
    *total = all;
  }
}

CASE(last_block_sums) {
  std::vector<unsigned> in(5000);
  unsigned want = 0;
  for (size_t i = 0; i < in.size(); i++) want += in[i] = mix(i);
  Device<unsigned> source(in), partial(7), total(1);
  for (int round = 0; round < 3; round++) last_block_kernel<<<7, 96>>>(partial.data, total.data, source.data, (int)in.size());
  EXPECT(total.host()[0] == want);
}

// ---- warps

__global__ void warp_kernel(unsigned* out, const unsigned* in) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, x = in[i];
  unsigned sum = x;
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  unsigned scan = x;
  for (int d = 1; d < 32; d <<= 1) {
    unsigned other = __shfl_up_sync(~0u, scan, d);
    if (lane >= (unsigned)d) scan += other;
  }
  unsigned votes = __ballot_sync(~0u, x & 1), any = __any_sync(~0u, x % 97 == 0), all = __all_sync(~0u, x < 0xf0000000u);
  unsigned rotated = __shfl_sync(~0u, x, lane + 5), narrow = __shfl_down_sync(~0u, x, 3, 8);
  unsigned long long wide = __shfl_sync(~0u, (unsigned long long)x << 20, 31 - lane);
  unsigned divergent = 0;
  if (x & 4) {
    unsigned mask = __activemask();
    divergent = __popc(__ballot_sync(mask, x & 8)) + (__ffs(mask) == (int)lane + 1 ? 100 : 0);
  }
  unsigned match = __match_any_sync(~0u, x & 3);
  __syncwarp();
  unsigned* o = out + i * 10;
  o[0] = sum, o[1] = scan, o[2] = votes, o[3] = any | all << 1, o[4] = rotated, o[5] = narrow;
  o[6] = (unsigned)wide, o[7] = (unsigned)(wide >> 32), o[8] = divergent, o[9] = match;
}

CASE(warps) {
  for (int threads : {32, 64, 96, 160, 256}) {
    std::vector<unsigned> in(threads * 2);
    for (size_t i = 0; i < in.size(); i++) in[i] = mix(i + threads);
    Device<unsigned> source(in), target(in.size() * 10);
    warp_kernel<<<2, threads>>>(target.data, source.data);
    auto got = target.host();
    for (size_t i = 0; i < in.size(); i++) {
      const unsigned* w = &in[i / 32 * 32];
      unsigned lane = i % 32, x = in[i], want[10] = {}, all = 1, any = 0, mask4 = 0;
      for (unsigned l = 0; l < 32; l++) {
        want[0] += w[l];
        if (l <= lane) want[1] += w[l];
        want[2] |= (w[l] & 1) << l;
        any |= w[l] % 97 == 0, all &= w[l] < 0xf0000000u;
        if (w[l] & 4) mask4 |= 1u << l;
        if ((w[l] & 3) == (x & 3)) want[9] |= 1u << l;
      }
      want[3] = any | all << 1;
      want[4] = w[(lane + 5) % 32];
      want[5] = lane % 8 + 3 < 8 ? w[lane + 3] : x;
      unsigned long long wide = (unsigned long long)w[31 - lane] << 20;
      want[6] = (unsigned)wide, want[7] = (unsigned)(wide >> 32);
      if (x & 4) {
        for (unsigned l = 0; l < 32; l++) want[8] += (w[l] & 4) && (w[l] & 8);
        if (__builtin_ffs(mask4) == (int)lane + 1) want[8] += 100;
      }
      for (int k = 0; k < 10; k++)
        if (got[i * 10 + k] != want[k]) return fail("%d threads, thread %zu, result %d: %#x, expected %#x", threads, i, k, got[i * 10 + k], want[k]);
    }
  }
}

__global__ void odd_block_kernel(unsigned* out) {
  unsigned mask = __ballot_sync(~0u, true), count = __syncthreads_count(threadIdx.x % 3 == 0);
  int any = __syncthreads_or(threadIdx.x == 40), all = __syncthreads_and(threadIdx.x < 1000);
  out[threadIdx.x] = __popc(mask) | count << 8 | any << 20 | all << 21;
}

CASE(odd_blocks) {
  for (int threads : {1, 7, 33, 50, 100, 1000}) {
    Device<unsigned> out(threads);
    // Lanes that do not exist are not in the mask; CUDA lets a full mask stand for those that do.
    odd_block_kernel<<<1, threads>>>(out.data);
    auto got = out.host();
    for (int i = 0; i < threads; i++) {
      unsigned in_warp = std::min(32, threads - i / 32 * 32), thirds = (threads + 2) / 3;
      unsigned want = in_warp | thirds << 8 | (unsigned)(threads > 40) << 20 | 1u << 21;
      if (got[i] != want) return fail("%d threads, thread %d: %#x, expected %#x", threads, i, got[i], want);
    }
  }
}

// ---- shapes of grids

__global__ void shape_kernel(unsigned* out) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned size = blockDim.x * blockDim.y * blockDim.z;
  out[block * size + thread] = threadIdx.x | threadIdx.y << 5 | threadIdx.z << 10 | blockIdx.x << 15 | blockIdx.y << 20 | blockIdx.z << 25;
}

CASE(grids) {
  dim3 grids[] = {dim3(3, 2, 4), dim3(1, 7, 1), dim3(5)}, blocks[] = {dim3(4, 5, 3), dim3(1, 1, 64), dim3(17, 2), dim3(31)};
  for (dim3 g : grids)
    for (dim3 b : blocks) {
      Device<unsigned> out(g.x * g.y * g.z * b.x * b.y * b.z);
      shape_kernel<<<g, b>>>(out.data);
      auto got = out.host();
      size_t at = 0;
      for (unsigned bz = 0; bz < g.z; bz++)
        for (unsigned by = 0; by < g.y; by++)
          for (unsigned bx = 0; bx < g.x; bx++)
            for (unsigned z = 0; z < b.z; z++)
              for (unsigned y = 0; y < b.y; y++)
                for (unsigned x = 0; x < b.x; x++, at++)
                  if (got[at] != (x | y << 5 | z << 10 | bx << 15 | by << 20 | bz << 25)) return fail("element %zu", at);
    }
}

__global__ void stencil_kernel(float* out, const float* in, int w, int h) {
  __shared__ float tile[18][18];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (int ty = threadIdx.y; ty < 18; ty += 16)
    for (int tx = threadIdx.x; tx < 18; tx += 16) {
      int gx = min(max((int)blockIdx.x * 16 + tx - 1, 0), w - 1), gy = min(max((int)blockIdx.y * 16 + ty - 1, 0), h - 1);
      tile[ty][tx] = __ldg(in + gy * w + gx);
    }
  __syncthreads();
  if (x >= w || y >= h) return;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  out[y * w + x] = tile[ty][tx] * 4 - tile[ty - 1][tx] - tile[ty + 1][tx] - tile[ty][tx - 1] - tile[ty][tx + 1];
}

CASE(stencil) {
  int w = 70, h = 45;
  std::vector<float> in(w * h);
  for (size_t i = 0; i < in.size(); i++) in[i] = (float)(mix(i) & 1023);
  Device<float> source(in), target(in.size());
  stencil_kernel<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(target.data, source.data, w, h);
  auto got = target.host();
  auto at = [&](int x, int y) { return in[std::min(std::max(y, 0), h - 1) * w + std::min(std::max(x, 0), w - 1)]; };
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      if (got[y * w + x] != at(x, y) * 4 - at(x, y - 1) - at(x, y + 1) - at(x - 1, y) - at(x + 1, y)) return fail("at %d, %d", x, y);
}

__global__ void matmul_kernel(double* c, const double* a, const double* b, int n) {
  __shared__ double ta[16][16], tb[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  double sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

CASE(matrix_product) {
  int n = 48;
  std::vector<double> a(n * n), b(n * n);
  for (int i = 0; i < n * n; i++) a[i] = (int)(mix(i) & 63) - 32, b[i] = (int)(mix(i + 5000) & 63) - 32;
  Device<double> da(a), db(b), dc(n * n);
  matmul_kernel<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(dc.data, da.data, db.data, n);
  auto got = dc.host();
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double want = 0;
      for (int k = 0; k < n; k++) want += a[i * n + k] * b[k * n + j];
      if (got[i * n + j] != want) return fail("at %d, %d: %g, expected %g", i, j, got[i * n + j], want);
    }
}

// ---- control flow that nests and diverges

__host__ __device__ inline unsigned collatz(unsigned x) {
  unsigned steps = 0;
  while (x != 1 && steps < 200) {
    switch (x % 6) {
      case 0: x /= 6, steps += 3; break;
      case 1: x = 3 * x + 1; steps++;  // falls through: an odd number became even
      case 4: x /= 2, steps++; break;
      case 2: x /= 2, steps++; continue;
      case 3: x = 3 * x + 1, steps++; goto halve;
      default: if (x > 1000) { x = x / 5 + 1; steps += 7; } else x = 3 * x + 1, steps++; break;
    }
    continue;
  halve:
    for (int i = 0; i < 3 && x % 2 == 0; i++) x /= 2, steps++;
  }
  return steps;
}
struct Collatz {
  __host__ __device__ unsigned operator()(uint32_t x) const { return collatz(x % 5000 + 1); }
};

CASE(divergence) {
  std::vector<uint32_t> in(640);
  for (size_t i = 0; i < in.size(); i++) in[i] = mix(i);
  same<unsigned>("collatz", in, Collatz());
}

// ---- vectors, unions and unaligned fields

__global__ void vector_kernel(float4* out, const float4* in, const uchar4* bytes, const short2* shorts, const double2* doubles) {
  int i = threadIdx.x;
  float4 v = in[i];
  uchar4 b = bytes[i];
  short2 s = shorts[i];
  double2 d = doubles[i];
  out[i] = make_float4(v.x + b.x, v.y * b.y + s.x, v.z - b.z - s.y, v.w + b.w + (float)(d.x - d.y));
}

CASE(vectors) {
  std::vector<float4> in(70);
  std::vector<uchar4> bytes(70);
  std::vector<short2> shorts(70);
  std::vector<double2> doubles(70);
  for (int i = 0; i < 70; i++) {
    in[i] = make_float4(i, i * 2, i * 3, i * 4);
    bytes[i] = make_uchar4(i, 255 - i, i * 3, 7);
    shorts[i] = make_short2(-i * 100, i * 5);
    doubles[i] = make_double2(i * 10, i);
  }
  Device<float4> a(in), out(70);
  Device<uchar4> b(bytes);
  Device<short2> s(shorts);
  Device<double2> d(doubles);
  vector_kernel<<<1, 70>>>(out.data, a.data, b.data, s.data, d.data);
  auto got = out.host();
  for (int i = 0; i < 70; i++)
    EXPECT(got[i].x == i + i && got[i].y == i * 2.0f * (255 - i) - i * 100 && got[i].z == i * 3 - (i * 3) % 256 - i * 5 && got[i].w == i * 4 + 7 + i * 9);
}

// ---- what kernels tell: printf, assert, clocks, malloc

__global__ void printf_kernel(int n) {
  if (threadIdx.x == 0) printf("kernel says %d %s %5.2f %c %llx %%\n", n, "text", 3.14159, 'z', 0x123456789abcull);
}

CASE(device_printf) {
  fflush(stdout);
  char path[] = "/tmp/printf-XXXXXX";
  int file = mkstemp(path), saved = dup(1);
  dup2(file, 1);
  printf_kernel<<<1, 64>>>(-5);
  OK(cudaDeviceSynchronize());
  fflush(stdout);
  dup2(saved, 1);
  close(saved);
  char text[200] = {};
  EXPECT(pread(file, text, sizeof text - 1, 0) > 0);
  close(file);
  unlink(path);
  if (strcmp(text, "kernel says -5 text  3.14 z 123456789abc %\n") != 0) fail("printed: %s", text);
}

__global__ void clock_kernel(long long* out) {
  long long start = clock64();
  unsigned x = threadIdx.x;
  for (int i = 0; i < 100; i++) x = mix(x);
  out[threadIdx.x] = clock64() - start + (x == 12345);
}

CASE(clocks) {
  Device<long long> out(32);
  clock_kernel<<<1, 32>>>(out.data);
  for (long long t : out.host()) EXPECT(t > 0 && t < 1ll << 40);
}

__global__ void early_exit_kernel(int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = i;
  if (i % 3 == 0) return;
  unsigned active = __activemask();
  out[i] += __popc(active) > 0 ? 1000 : 0;
}

CASE(early_exits) {
  Device<int> out(std::vector<int>(100, -1));
  early_exit_kernel<<<1, 100>>>(out.data, 77);
  auto got = out.host();
  for (int i = 0; i < 100; i++) EXPECT(got[i] == (i >= 77 ? -1 : i % 3 == 0 ? i : i + 1000));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
