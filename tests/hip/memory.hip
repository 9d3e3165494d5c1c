// Device, pinned, registered, managed and pitched memory; copies and fills of every kind; two GPUs.
#include "common.h"

__global__ void add_index(uint32_t *data, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) data[i] += (uint32_t)i;
}

static void linear()
{
    for (size_t bytes : {1, 3, 255, 4096, 4097, 1 << 20, (1 << 20) + 12345, 9 << 20}) {
        auto in = random_vector<uint8_t>(bytes, bytes);
        std::vector<uint8_t> out(bytes);
        uint8_t *a, *b;
        CHECK(hipMalloc(&a, bytes));
        CHECK(hipMalloc(&b, bytes));
        CHECK(hipMemcpy(a, in.data(), bytes, hipMemcpyHostToDevice));
        CHECK(hipMemcpy(b, a, bytes, hipMemcpyDeviceToDevice));
        // An odd middle part once more, from the device's other end.
        if (bytes > 100) CHECK(hipMemcpy(b + 13, a + bytes / 2, bytes / 3, hipMemcpyDeviceToDevice));
        CHECK(hipMemcpy(out.data(), b, bytes, hipMemcpyDeviceToHost));
        report("linear", out);
        CHECK(hipFree(a));
        CHECK(hipFree(b));
    }
}

static void fills()
{
    const size_t count = 100003;
    uint8_t *d;
    CHECK(hipMalloc(&d, count * 4));
    CHECK(hipMemset(d, 0x5a, count * 4));
    CHECK(hipMemsetD8((hipDeviceptr_t)(d + 1), 0x11, 77));
    CHECK(hipMemsetD16((hipDeviceptr_t)(d + 4096), 0x2233, 1001));
    CHECK(hipMemsetD32((hipDeviceptr_t)(d + 65536), 0x44556677, 20001));
    CHECK(hipMemset2D(d + 200000, 1000, 0x99, 333, 100));
    CHECK(hipDeviceSynchronize());
    report_device("fills", d, count * 4);
    CHECK(hipFree(d));
}

static void pinned()
{
    const size_t count = 50000;
    uint32_t *host, *seen, *registered;
    CHECK(hipHostMalloc((void **)&host, count * 4, hipHostMallocMapped));
    CHECK(hipHostGetDevicePointer((void **)&seen, host, 0));
    for (size_t i = 0; i < count; i++) host[i] = (uint32_t)(i * 7);
    hipLaunchKernelGGL(add_index, dim3((count + 255) / 256), dim3(256), 0, 0, seen, count);
    CHECK(hipDeviceSynchronize());
    report("pinned", host, count * 4);
    CHECK(hipHostFree(host));

    std::vector<uint32_t> memory = random_vector(count, 5);
    CHECK(hipHostRegister(memory.data(), count * 4, hipHostRegisterMapped));
    CHECK(hipHostGetDevicePointer((void **)&registered, memory.data(), 0));
    hipLaunchKernelGGL(add_index, dim3((count + 255) / 256), dim3(256), 0, 0, registered, count);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(memory.data()));
    report("registered", memory);

    uint32_t *managed;
    CHECK(hipMallocManaged(&managed, count * 4));
    for (size_t i = 0; i < count; i++) managed[i] = (uint32_t)(i ^ 3);
    hipLaunchKernelGGL(add_index, dim3((count + 255) / 256), dim3(256), 0, 0, managed, count);
    CHECK(hipDeviceSynchronize());
    report("managed", managed, count * 4);
    CHECK(hipFree(managed));
}

static void rectangles()
{
    const size_t width = 333, height = 71, depth = 5;
    auto in = random_vector<uint8_t>(width * height * depth, 9);
    std::vector<uint8_t> out(width * height * depth, 1);
    void *flat;
    size_t pitch;
    CHECK(hipMallocPitch(&flat, &pitch, width, height));
    EXPECT(pitch >= width);
    CHECK(hipMemcpy2D(flat, pitch, in.data(), width, width, height, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2D((char *)flat + 5, pitch, in.data() + 100, width, 100, 20, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2D(out.data(), width, flat, pitch, width, height, hipMemcpyDeviceToHost));
    report("2D", out.data(), width * height);

    hipPitchedPtr box;
    CHECK(hipMalloc3D(&box, make_hipExtent(width, height, depth)));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(in.data(), width, width, height);
    copy.dstPtr = box;
    copy.extent = make_hipExtent(width, height, depth);
    copy.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy));
    hipMemcpy3DParms back = {};
    back.srcPtr = box;
    back.srcPos = make_hipPos(10, 3, 1);
    back.dstPtr = make_hipPitchedPtr(out.data(), width, width, height);
    back.dstPos = make_hipPos(1, 2, 0);
    back.extent = make_hipExtent(200, 60, 4);
    back.kind = hipMemcpyDeviceToHost;
    CHECK(hipMemcpy3D(&back));
    report("3D", out);
    CHECK(hipFree(flat));
    CHECK(hipFree(box.ptr));
}

static void peers()
{
    const size_t count = 70001;
    int devices = 0, can = 0;
    CHECK(hipGetDeviceCount(&devices));
    EXPECT(devices == 2);
    CHECK(hipDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can == 1);
    auto in = random_vector(count, 21);
    uint32_t *here, *there;
    CHECK(hipSetDevice(1));
    CHECK(hipMalloc(&there, count * 4));
    CHECK(hipDeviceEnablePeerAccess(0, 0));
    CHECK(hipSetDevice(0));
    CHECK(hipMalloc(&here, count * 4));
    CHECK(hipDeviceEnablePeerAccess(1, 0));
    CHECK(hipMemcpy(here, in.data(), count * 4, hipMemcpyHostToDevice));
    CHECK(hipMemcpyPeer(there, 1, here, 0, count * 4));
    // A kernel of one GPU changes the other's memory.
    hipLaunchKernelGGL(add_index, dim3((count + 255) / 256), dim3(256), 0, 0, there, count);
    CHECK(hipDeviceSynchronize());
    report_device("peer kernel", there, count);
    CHECK(hipMemcpy(here, there, count * 4, hipMemcpyDefault));
    report_device("peer copy", here, count);
    CHECK(hipFree(here));
    CHECK(hipFree(there));
}

int main()
{
    linear();
    fills();
    pinned();
    rectangles();
    peers();
#ifdef __HIPCC__
    // What only the real one can answer.
    size_t before, after, total;
    void *block;
    CHECK(hipMemGetInfo(&before, &total));
    CHECK(hipMalloc(&block, 64 << 20));
    CHECK(hipMemGetInfo(&after, &total));
    EXPECT(before - after >= 64u << 20 && before <= total);
    hipPointerAttribute_t attributes;
    CHECK(hipPointerGetAttributes(&attributes, (char *)block + 4097));
    EXPECT(attributes.memoryType == hipMemoryTypeDevice && attributes.device == 0);
    hipDeviceptr_t base;
    size_t size;
    CHECK(hipMemGetAddressRange(&base, &size, (char *)block + 4097));
    EXPECT(base == block && size == 64 << 20);
    CHECK(hipFree(block));
    EXPECT(hipFree((void *)&before) != hipSuccess);
    EXPECT(hipMalloc(&block, (size_t)1 << 50) == hipErrorOutOfMemory);
#endif
    return 0;
}
