// printf in kernels: formats, strings, many lanes and waves; its lines come in any order.
#include "common.h"

__global__ void values(int i, unsigned u, double d, const char *text, long long wide)
{
    printf("values: %d %u %.3f %s %lld %x %c %5d| %-5d| %%\n", i, u, d, text, wide, u, 'z', i, i);
    printf("no arguments\n");
    printf("pointer %p\n", (void *)0x1234);
}

__global__ void lanes(int key)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0) printf("lane %u of %u says %d\n", i, gridDim.x * blockDim.x, key * (int)i);
    else if (i % 7 == 0) printf("other %u\n", i);
}

int main()
{
#ifdef __HIPCC__
    // A constant string of the kernel's own is device memory; an argument must be memory that the GPU can read.
    char *text;
    CHECK(hipHostMalloc((void **)&text, 64, hipHostMallocDefault));
    strcpy(text, "hello");
#else
    const char *text = "hello";
#endif
    hipLaunchKernelGGL(values, dim3(1), dim3(1), 0, 0, -5, 7u, 3.14159, (const char *)text, 123456789012345ll);
    CHECK(hipDeviceSynchronize());
    hipLaunchKernelGGL(lanes, dim3(4), dim3(96), 0, 0, 11);
    CHECK(hipDeviceSynchronize());
    hipLaunchKernelGGL(lanes, dim3(2), dim3(64), 0, 0, 13);
    CHECK(hipDeviceSynchronize());
    fflush(stdout);
    return 0;
}
