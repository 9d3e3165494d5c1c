// The reduction kernels of the stand-in for a closed GPU transport layer: sum, minimum, maximum and product of four types.
//
// combine_OP_TYPE(inout, in, count): inout[i] = inout[i] OP in[i], what MPI_Reduce does with two buffers
// fold_OP_TYPE(partial, in, count):  partial[block] = in[...] OP in[...] OP ..., a tree in shared memory and then in a warp
//
// Every kernel has the same parameters, so that the stand-in can be plain C. The host repeats the arithmetic: i32 wraps.

enum { BLOCK = 256 };

template <class T> struct Wrapping { using type = T; };
template <> struct Wrapping<int> { using type = unsigned; };

struct Sum {
  template <class T> static __device__ T identity() { return T(0); }
  template <class T> static __device__ T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return T(W(a) + W(b));
  }
};
struct Prod {
  template <class T> static __device__ T identity() { return T(1); }
  template <class T> static __device__ T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return T(W(a) * W(b));
  }
};
// Minimum and maximum start from an element, so they need no identity of their own.
struct Min {
  template <class T> static __device__ T apply(T a, T b) { return b < a ? b : a; }
};
struct Max {
  template <class T> static __device__ T apply(T a, T b) { return a < b ? b : a; }
};

template <class Op, class T> __device__ void combine(T *inout, const T *in, unsigned long long count) {
  unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
    inout[i] = Op::apply(inout[i], in[i]);
}

// Elements past the end repeat element 0 of the block's range for min and max, and are left out for sum and product.
template <class Op, class T> struct Start {
  static __device__ T of(const T *) { return Op::template identity<T>(); }
};
template <class T> struct Start<Min, T> {
  static __device__ T of(const T *in) { return in[0]; }
};
template <class T> struct Start<Max, T> {
  static __device__ T of(const T *in) { return in[0]; }
};

template <class Op, class T> __device__ void fold(T *partial, const T *in, unsigned long long count) {
  __shared__ T tree[BLOCK];
  unsigned long long stride = (unsigned long long)gridDim.x * BLOCK;
  T mine = Start<Op, T>::of(in);
  for (unsigned long long i = (unsigned long long)blockIdx.x * BLOCK + threadIdx.x; i < count; i += stride)
    mine = Op::apply(mine, in[i]);
  tree[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = BLOCK / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) tree[threadIdx.x] = Op::apply(tree[threadIdx.x], tree[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    mine = tree[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) mine = Op::apply(mine, __shfl_down_sync(0xffffffffu, mine, offset));
    if (threadIdx.x == 0) partial[blockIdx.x] = mine;
  }
}

#define KERNELS(op, Op, type, T)                                                                                       \
  extern "C" __global__ void combine_##op##_##type(T *inout, const T *in, unsigned long long count) {                  \
    combine<Op, T>(inout, in, count);                                                                                  \
  }                                                                                                                    \
  extern "C" __global__ void fold_##op##_##type(T *partial, const T *in, unsigned long long count) {                   \
    fold<Op, T>(partial, in, count);                                                                                   \
  }
#define TYPES(op, Op)                                                                                                  \
  KERNELS(op, Op, i32, int)                                                                                            \
  KERNELS(op, Op, u64, unsigned long long)                                                                             \
  KERNELS(op, Op, f32, float)                                                                                          \
  KERNELS(op, Op, f64, double)

TYPES(sum, Sum)
TYPES(min, Min)
TYPES(max, Max)
TYPES(prod, Prod)
