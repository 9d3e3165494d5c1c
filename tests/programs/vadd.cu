// One kernel, as nvcc's users write it: adds two vectors and checks every element.
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *sum, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

int main() {
    const int count = 100003;
    std::vector<float> a(count), b(count), sum(count);
    for (int i = 0; i < count; i++) a[i] = 0.5f * i, b[i] = 3.0f - i;
    float *device[3];
    for (auto &pointer : device)
        if (cudaMalloc(&pointer, count * sizeof(float)) != cudaSuccess) return 1;
    cudaMemcpy(device[0], a.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device[1], b.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    add<<<(count + 255) / 256, 256>>>(device[0], device[1], device[2], count);
    cudaMemcpy(sum.data(), device[2], count * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaError_t error = cudaGetLastError()) {
        std::printf("%s\n", cudaGetErrorString(error));
        return 1;
    }
    for (int i = 0; i < count; i++)
        if (sum[i] != a[i] + b[i]) {
            std::printf("element %d is %g, not %g\n", i, sum[i], a[i] + b[i]);
            return 1;
        }
    std::printf("%d sums are right\n", count);
}
