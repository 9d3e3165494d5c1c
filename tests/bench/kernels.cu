// The kernels of streams.c, compiled by nvcc and by HIP's clang; it launches them by the addresses of their stubs, as compiled programs do.
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif

__global__ void empty() {}
__global__ void four(int *, long, float, int) {}

extern "C" const void *kernel_empty() { return (const void *)empty; }
extern "C" const void *kernel_four() { return (const void *)four; }
