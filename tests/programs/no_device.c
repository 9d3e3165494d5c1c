// On a machine without a device (or without ROCr), CUDA's entry points say so with error 100 and everything goes on. The count
// stays as it was, as recorded.
#include <stdio.h>

int cuInit(unsigned);
int cudaGetDeviceCount(int *);
int cudaGetLastError(void);
int cuDeviceGetCount(int *);

int main(void) {
  int count = -1;
  int init = cuInit(0), runtime = cudaGetDeviceCount(&count), last = cudaGetLastError();
  int driver_count = -1, driver = cuDeviceGetCount(&driver_count);
  printf("cuInit %d, cudaGetDeviceCount %d (count %d, last error %d), cuDeviceGetCount %d\n", init, runtime, count, last, driver);
  return !(init == 100 && runtime == 100 && count == -1 && last == 100 && driver == 3);
}
