// arch: compute_80
// Matrix fragments, each product compared element by element with the same sum on the host: every shape and element type of
// nvcuda::wmma, both orders of every operand in memory, strides with gaps, copies that arrive at a barrier, and the products of
// mma that only PTX names.
// All values are small enough that no sum is ever rounded.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <limits>
#include <type_traits>

#include "cases.h"

using namespace nvcuda;
namespace precision = nvcuda::wmma::experimental::precision;

static const int kGap = 32;

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// ---- element types: how they are stored, and small values of them

template <typename T>
struct Element {
  using Stored = T;
  static const int bits = 8 * sizeof(T);
  static int value(uint32_t seed) { return (int)(mix(seed) % 9) - 4; }
};
template <>
struct Element<signed char> {
  using Stored = signed char;
  static const int bits = 8;
  static int value(uint32_t seed) { return (signed char)mix(seed); }
};
template <>
struct Element<unsigned char> {
  using Stored = unsigned char;
  static const int bits = 8;
  static int value(uint32_t seed) { return (unsigned char)mix(seed); }
};
template <>
struct Element<wmma::precision::tf32> {
  using Stored = float;
  static const int bits = 32;
  static int value(uint32_t seed) { return (int)(mix(seed) % 9) - 4; }
};
template <>
struct Element<precision::s4> {
  using Stored = unsigned char;
  static const int bits = 4;
  static int value(uint32_t seed) { return (int)(mix(seed) % 16) - 8; }
};
template <>
struct Element<precision::u4> {
  using Stored = unsigned char;
  static const int bits = 4;
  static int value(uint32_t seed) { return mix(seed) % 16; }
};
template <>
struct Element<precision::b1> {
  using Stored = unsigned char;
  static const int bits = 1;
  static int value(uint32_t seed) { return mix(seed) % 2; }
};

// A matrix in memory with a gap after each row (or column); `values` are what it holds, by rows.
template <typename T>
struct Matrix {
  int rows, columns, stride;
  bool by_rows;
  std::vector<int> values;
  std::vector<unsigned char> bytes;

  Matrix(int m, int n, bool order, uint32_t seed) : rows(m), columns(n), by_rows(order) {
    int bits = Element<T>::bits;
    int gap = bits < 8 ? 8 * kGap / bits : kGap;
    stride = (by_rows ? n : m) + gap;
    bytes.assign((size_t)stride * (by_rows ? m : n) * bits / 8, 0x77);
    for (int r = 0; r < m; r++) {
      for (int c = 0; c < n; c++) {
        int value = Element<T>::value(seed + r * 1000 + c);
        values.push_back(value);
        size_t at = by_rows ? (size_t)r * stride + c : (size_t)c * stride + r;
        if (bits < 8) {
          unsigned char& byte = bytes[at * bits / 8];
          int shift = at * bits % 8, mask = (1 << bits) - 1;
          byte = (byte & ~(mask << shift)) | (value & mask) << shift;
        } else {
          typename Element<T>::Stored stored = (typename Element<T>::Stored)(float)value;
          memcpy(&bytes[at * sizeof stored], &stored, sizeof stored);
        }
      }
    }
  }
  int at(int r, int c) const { return values[r * columns + c]; }
};

template <typename T>
static double read(const std::vector<unsigned char>& bytes, size_t at) {
  T value;
  memcpy(&value, &bytes[at * sizeof value], sizeof value);
  return (double)(float)value;
}
template <>
double read<double>(const std::vector<unsigned char>& bytes, size_t at) {
  double value;
  memcpy(&value, &bytes[at * sizeof value], sizeof value);
  return value;
}
template <>
double read<int>(const std::vector<unsigned char>& bytes, size_t at) {
  int value;
  memcpy(&value, &bytes[at * sizeof value], sizeof value);
  return value;
}

// ---- D = 3 * (A * B + C): the factor is applied to every element of the fragment, as an epilogue would

template <int M, int N, int K, typename T, typename Sum, typename Result, typename OrderA, typename OrderB, bool kShared>
__global__ void multiply(const void* a, const void* b, const Sum* c, Result* d, int4 strides, bool by_rows) {
  using Stored = typename Element<T>::Stored;
  wmma::fragment<wmma::matrix_a, M, N, K, T, OrderA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, OrderB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
  wmma::fragment<wmma::accumulator, M, N, K, Result> fd;
  wmma::layout_t order = by_rows ? wmma::mem_row_major : wmma::mem_col_major;
  const int lines = by_rows ? M : N;
  extern __shared__ __align__(32) unsigned char shared[];
  if constexpr (kShared) {
    Sum* copy = reinterpret_cast<Sum*>(shared);
    for (int at = threadIdx.x; at < lines * strides.z; at += blockDim.x) copy[at] = c[at];
    __syncthreads();
    wmma::load_matrix_sync(fc, copy, strides.z, order);
  } else {
    wmma::load_matrix_sync(fc, c, strides.z, order);
  }
  if constexpr (Element<T>::bits < 8) {
    wmma::load_matrix_sync(fa, a, strides.x);
    wmma::load_matrix_sync(fb, b, strides.y);
  } else {
    wmma::load_matrix_sync(fa, static_cast<const Stored*>(a), strides.x);
    wmma::load_matrix_sync(fb, static_cast<const Stored*>(b), strides.y);
  }
  if constexpr (Element<T>::bits == 1) {
    wmma::bmma_sync(fd, fa, fb, fc, wmma::experimental::bmmaBitOpAND);
  } else {
    wmma::mma_sync(fd, fa, fb, fc);
  }
  for (int at = 0; at < fd.num_elements; at++) fd.x[at] = fd.x[at] + fd.x[at] + fd.x[at];
  if constexpr (kShared) {
    Result* result = reinterpret_cast<Result*>(shared);
    __syncthreads();
    wmma::store_matrix_sync(result, fd, strides.w, order);
    __syncthreads();
    for (int r = 0; r < M; r++) {
      for (int n = threadIdx.x; n < N; n += 32) {
        int at = by_rows ? r * strides.w + n : n * strides.w + r;
        d[at] = result[at];
      }
    }
  } else {
    wmma::store_matrix_sync(d, fd, strides.w, order);
  }
}

template <int M, int N, int K, typename T, typename Sum, typename Result, typename OrderA, typename OrderB, bool kShared>
static void product(bool by_rows) {
  const bool rows_a = std::is_same<OrderA, wmma::row_major>::value;
  const bool rows_b = std::is_same<OrderB, wmma::row_major>::value;
  Matrix<T> a(M, K, rows_a, 17), b(K, N, rows_b, 90001);
  Matrix<Sum> c(M, N, by_rows, 555);
  Matrix<Result> d(M, N, by_rows, 0);
  Device<unsigned char> da(a.bytes), db(b.bytes), dc(c.bytes), dd(d.bytes);
  multiply<M, N, K, T, Sum, Result, OrderA, OrderB, kShared><<<1, 32, kShared ? std::max(c.bytes.size(), d.bytes.size()) : 0>>>(
      da.data, db.data, (const Sum*)dc.data, (Result*)dd.data, make_int4(a.stride, b.stride, c.stride, d.stride), by_rows);
  std::vector<unsigned char> got = dd.host();
  const int line = by_rows ? N : M;
  for (size_t at = 0; at < got.size() / sizeof(Result); at++) {
    int outer = at / d.stride, inner = at % d.stride;
    if (inner >= line) {
      if (memcmp(&got[at * sizeof(Result)], &d.bytes[at * sizeof(Result)], sizeof(Result)) != 0) {
        fail("m%dn%dk%d: the gap after line %d was written", M, N, K, outer);
        return;
      }
      continue;
    }
    int r = by_rows ? outer : inner, n = by_rows ? inner : outer;
    double want = c.at(r, n);
    for (int k = 0; k < K; k++) want += (double)a.at(r, k) * b.at(k, n);
    want *= 3;
    double found = read<Result>(got, at);
    if (found != want) {
      fail("m%dn%dk%d, A by %s, B by %s, C and D by %s%s: element %d, %d is %g, expected %g", M, N, K, rows_a ? "rows" : "columns",
           rows_b ? "rows" : "columns", by_rows ? "rows" : "columns", kShared ? ", in shared memory" : "", r, n, found, want);
      return;
    }
  }
}

template <int M, int N, int K, typename T, typename Sum, typename Result = Sum>
static void all_orders() {
  using Rows = wmma::row_major;
  using Columns = wmma::col_major;
  product<M, N, K, T, Sum, Result, Rows, Columns, false>(true);
  product<M, N, K, T, Sum, Result, Rows, Columns, true>(false);
  if constexpr (Element<T>::bits >= 8) {
    product<M, N, K, T, Sum, Result, Rows, Rows, false>(true);
    product<M, N, K, T, Sum, Result, Columns, Columns, false>(false);
    product<M, N, K, T, Sum, Result, Columns, Rows, true>(true);
  }
}

template <typename T, typename Sum, typename Result = Sum>
static void all_shapes() {
  all_orders<16, 16, 16, T, Sum, Result>();
  all_orders<32, 8, 16, T, Sum, Result>();
  all_orders<8, 32, 16, T, Sum, Result>();
}

CASE(halves_into_floats) { all_shapes<half, float>(); }
CASE(halves_into_halves) { all_shapes<half, half>(); }
CASE(halves_from_one_into_the_other) {
  all_orders<16, 16, 16, half, float, half>();
  all_orders<32, 8, 16, half, half, float>();
}
CASE(bfloats) { all_shapes<__nv_bfloat16, float>(); }
CASE(bytes) {
  all_shapes<signed char, int>();
  all_shapes<unsigned char, int>();
}
CASE(tf32) { all_orders<16, 16, 8, wmma::precision::tf32, float>(); }
CASE(doubles) { all_orders<8, 8, 4, double, double>(); }
CASE(quarters_of_halves) {
  all_orders<8, 8, 32, precision::s4, int>();
  all_orders<8, 8, 32, precision::u4, int>();
}
CASE(single_bits) { all_orders<8, 8, 128, precision::b1, int>(); }

// ---- several warps, each with tiles of its own, and many steps of k through shared memory

static const int kSide = 64;

__global__ void tiled(const half* a, const half* b, float* d) {
  __shared__ __align__(32) half sa[kSide * 16], sb[16 * kSide];
  int warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (auto& line : sums)
    for (auto& sum : line) wmma::fill_fragment(sum, 1.0f);
  for (int k = 0; k < kSide; k += 16) {
    for (int at = threadIdx.x; at < kSide * 16; at += blockDim.x) {
      sa[at] = a[at / 16 * kSide + k + at % 16];
      sb[at] = b[(k + at / kSide) * kSide + at % kSide];
    }
    __syncthreads();
    for (int m = 0; m < 2; m++) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
      wmma::load_matrix_sync(fa, sa + (row + 16 * m) * 16, 16);
      for (int n = 0; n < 2; n++) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::load_matrix_sync(fb, sb + column + 16 * n, kSide);
        wmma::mma_sync(sums[m][n], fa, fb, sums[m][n]);
      }
    }
    __syncthreads();
  }
  for (int m = 0; m < 2; m++)
    for (int n = 0; n < 2; n++)
      wmma::store_matrix_sync(d + (row + 16 * m) * kSide + column + 16 * n, sums[m][n], kSide, wmma::mem_row_major);
}

CASE(warps_of_a_block) {
  std::vector<half> a, b;
  for (int at = 0; at < kSide * kSide; at++) {
    a.push_back((float)Element<half>::value(at));
    b.push_back((float)Element<half>::value(at + 70000));
  }
  Device<half> da(a), db(b);
  Device<float> dd(kSide * kSide);
  tiled<<<1, 128>>>(da.data, db.data, dd.data);
  std::vector<float> got = dd.host();
  for (int r = 0; r < kSide; r++) {
    for (int c = 0; c < kSide; c++) {
      float want = 1;
      for (int k = 0; k < kSide; k++) want += (float)a[r * kSide + k] * (float)b[k * kSide + c];
      if (got[r * kSide + c] != want) {
        fail("element %d, %d is %g, expected %g", r, c, got[r * kSide + c], want);
        return;
      }
    }
  }
}

// ---- tiles whose copies arrive at a barrier by themselves: two warps copy, and each waits for both

__global__ void arriving(const half* a, const half* b, float* d) {
  __shared__ __align__(32) half sa[256], sb[256];
  __shared__ uint64_t barrier;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), lane = threadIdx.x % 32;
  const half* from = (threadIdx.x < 32 ? a : b) + lane * 8;
  unsigned to = (unsigned)__cvta_generic_to_shared((threadIdx.x < 32 ? sa : sb) + lane * 8);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  // The first changes nothing, the second is the arrival that is waited for.
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  int done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
  }
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, (float)(threadIdx.x / 32));
  wmma::load_matrix_sync(fa, sa, 16);
  wmma::load_matrix_sync(fb, sb, 16);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(d + threadIdx.x / 32 * 256, sum, 16, wmma::mem_row_major);
}

CASE(tiles_that_arrive_by_themselves) {
  std::vector<half> a, b;
  for (int at = 0; at < 256; at++) {
    a.push_back((float)Element<half>::value(at + 123));
    b.push_back((float)Element<half>::value(at + 9876));
  }
  Device<half> da(a), db(b);
  Device<float> dd(512);
  arriving<<<1, 64>>>(da.data, db.data, dd.data);
  std::vector<float> got = dd.host();
  for (int at = 0; at < 512; at++) {
    float want = at / 256;
    for (int k = 0; k < 16; k++) want += (float)a[at % 256 / 16 * 16 + k] * (float)b[k * 16 + at % 16];
    if (got[at] != want) {
      fail("element %d is %g, expected %g", at, got[at], want);
      return;
    }
  }
}

// ---- sums that reach the end of int

__global__ void saturate(const signed char* a, const signed char* b, const int* c, int* d, bool clamp) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  if (clamp) {
    wmma::mma_sync(fc, fa, fb, fc, true);
  } else {
    wmma::mma_sync(fc, fa, fb, fc, false);
  }
  wmma::store_matrix_sync(d, fc, 16, wmma::mem_row_major);
}

CASE(clamped_and_wrapped_sums) {
  std::vector<signed char> a(256), b(256);
  std::vector<int> c(256);
  for (int at = 0; at < 256; at++) {
    a[at] = Element<signed char>::value(at);
    b[at] = Element<signed char>::value(at + 4000);
    c[at] = at % 3 == 0 ? 2147483647 - at : at % 3 == 1 ? -2147483647 + at : at;
  }
  Device<signed char> da(a), db(b);
  Device<int> dc(c), dd(256);
  for (bool clamp : {false, true}) {
    saturate<<<1, 32>>>(da.data, db.data, dc.data, dd.data, clamp);
    std::vector<int> got = dd.host();
    int clamped = 0;
    for (int at = 0; at < 256; at++) {
      long long want = c[at];
      for (int k = 0; k < 16; k++) want += a[at / 16 * 16 + k] * b[at % 16 * 16 + k];
      long long low = std::numeric_limits<int>::min(), high = std::numeric_limits<int>::max();
      clamped += want < low || want > high;
      if (clamp) want = std::min(std::max(want, low), high);
      if (got[at] != (int)want) {
        fail("%s: element %d is %d, expected %d", clamp ? "clamped" : "wrapped", at, got[at], (int)want);
        return;
      }
    }
    EXPECT(clamped > 20);
  }
}

// ---- mma of small elements: registers are laid out as PTX says

template <int kBits, bool kSigned>
static int field(uint32_t word, int at) {
  int value = word >> (at * kBits) & ((1u << kBits) - 1);
  return kSigned && value >> (kBits - 1) ? value - (1 << kBits) : value;
}

// A has 16 rows and B 8 columns; k goes through chunks of one register in each of four lanes.
template <typename Multiply>
static void small(const char* what, int chunks, int elements, Multiply f, void (*kernel)(const uint32_t*, const uint32_t*, int*)) {
  std::vector<uint32_t> a(32 * 2 * chunks), b(32 * chunks);
  for (size_t at = 0; at < a.size(); at++) a[at] = mix(at + 1);
  for (size_t at = 0; at < b.size(); at++) b[at] = mix(at + 100001);
  Device<uint32_t> da(a), db(b);
  Device<int> dd(128);
  kernel<<<1, 32>>>(da.data, db.data, dd.data);
  std::vector<int> got = dd.host();
  for (int lane = 0; lane < 32; lane++) {
    for (int at = 0; at < 4; at++) {
      int row = lane / 4 + at / 2 * 8, column = lane % 4 * 2 + at % 2;
      int want = lane * 4 + at;
      for (int chunk = 0; chunk < chunks; chunk++) {
        for (int part = 0; part < 4; part++) {
          uint32_t x = a[(row % 8 * 4 + part) * 2 * chunks + 2 * chunk + row / 8];
          uint32_t y = b[(column * 4 + part) * chunks + chunk];
          for (int e = 0; e < elements; e++) want += f(x, y, e);
        }
      }
      if (got[lane * 4 + at] != want) {
        fail("%s: element %d of lane %d is %d, expected %d", what, at, lane, got[lane * 4 + at], want);
        return;
      }
    }
  }
}

#define LONG_MMA(NAME, OP)                                                                                            \
  __global__ void NAME(const uint32_t* a, const uint32_t* b, int* d) {                                                \
    int lane = threadIdx.x, *s = d + lane * 4;                                                                        \
    a += lane * 4;                                                                                                    \
    b += lane * 2;                                                                                                    \
    asm volatile(OP " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                            \
                 : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(lane * 4), "r"(lane * 4 + 1), \
                   "r"(lane * 4 + 2), "r"(lane * 4 + 3));                                                             \
  }

LONG_MMA(nibbles, "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32")
LONG_MMA(unsigned_nibbles, "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32")
LONG_MMA(differing_bits, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
LONG_MMA(common_bits, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc")

CASE(mma_of_less_than_bytes) {
  small("s4 by u4", 2, 8, [](uint32_t x, uint32_t y, int e) { return field<4, true>(x, e) * field<4, false>(y, e); }, nibbles);
  small("u4 by s4", 2, 8, [](uint32_t x, uint32_t y, int e) { return field<4, false>(x, e) * field<4, true>(y, e); }, unsigned_nibbles);
  small("xor", 2, 1, [](uint32_t x, uint32_t y, int) { return __builtin_popcount(x ^ y); }, differing_bits);
  small("and", 2, 1, [](uint32_t x, uint32_t y, int) { return __builtin_popcount(x & y); }, common_bits);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
