// Order within a stream and between streams: kernels, copies, callbacks, values written, priorities; events and their times.
#include "common.h"

__global__ void step(uint32_t *data, size_t count, uint32_t factor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * factor + 1;
}

static const size_t COUNT = 20000;
static void launch(hipStream_t stream, uint32_t *data, uint32_t factor)
{
    hipLaunchKernelGGL(step, dim3((COUNT + 127) / 128), dim3(128), 0, stream, data, COUNT, factor);
}

static void in_one_stream()
{
    hipStream_t stream;
    uint32_t *device, *pinned;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, COUNT * 4));
    CHECK(hipHostMalloc((void **)&pinned, COUNT * 4, hipHostMallocDefault));
    for (size_t i = 0; i < COUNT; i++) pinned[i] = (uint32_t)i;
    for (uint32_t round = 2; round < 12; round++) {
        CHECK(hipMemcpyAsync(device, pinned, COUNT * 4, hipMemcpyHostToDevice, stream));
        launch(stream, device, round);
        CHECK(hipMemcpyAsync(pinned, device, COUNT * 4, hipMemcpyDeviceToHost, stream));
    }
    CHECK(hipStreamSynchronize(stream));
    report("one stream", pinned, COUNT * 4);
    CHECK(hipFree(device));
    CHECK(hipHostFree(pinned));
    CHECK(hipStreamDestroy(stream));
}

// A chain that goes round eight streams by events: each link needs the one before.
static void between_streams()
{
    const int streams = 8, links = 64;
    hipStream_t stream[streams];
    hipEvent_t done[streams];
    uint32_t *device;
    CHECK(hipMalloc(&device, COUNT * 4));
    CHECK(hipMemset(device, 0, COUNT * 4));
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < streams; i++) {
        CHECK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
        CHECK(hipEventCreateWithFlags(&done[i], hipEventDisableTiming));
    }
    for (int link = 0; link < links; link++) {
        int at = link % streams;
        if (link) CHECK(hipStreamWaitEvent(stream[at], done[(link - 1) % streams], 0));
        launch(stream[at], device, 3 + link);
        CHECK(hipEventRecord(done[at], stream[at]));
    }
    CHECK(hipEventSynchronize(done[(links - 1) % streams]));
    CHECK(hipEventQuery(done[(links - 1) % streams]));
    report_device("eight streams", device, COUNT);
    for (int i = 0; i < streams; i++) {
        CHECK(hipStreamDestroy(stream[i]));
        CHECK(hipEventDestroy(done[i]));
    }
    CHECK(hipFree(device));
}

// The null stream comes after and before blocking streams.
static void null_stream()
{
    hipStream_t a, b;
    uint32_t *device;
    CHECK(hipStreamCreate(&a));
    CHECK(hipStreamCreate(&b));
    CHECK(hipMalloc(&device, COUNT * 4));
    CHECK(hipMemset(device, 7, COUNT * 4));
    launch(a, device, 5);
    launch(0, device, 7);
    launch(b, device, 11);
    launch(0, device, 13);
    CHECK(hipStreamSynchronize(0));
    report_device("null stream", device, COUNT);
    CHECK(hipStreamDestroy(a));
    CHECK(hipStreamDestroy(b));
    CHECK(hipFree(device));
}

struct Called {
    uint32_t *pinned;
    std::vector<uint32_t> seen;
};
static void called(hipStream_t, hipError_t error, void *data)
{
    Called *to = (Called *)data;
    EXPECT(error == hipSuccess);
    to->seen.push_back(to->pinned[0]);
    to->seen.push_back(to->pinned[COUNT - 1]);
}

static void callbacks()
{
    hipStream_t stream;
    uint32_t *device;
    Called state;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, COUNT * 4));
    CHECK(hipHostMalloc((void **)&state.pinned, COUNT * 4, hipHostMallocDefault));
    CHECK(hipMemsetAsync(device, 1, COUNT * 4, stream));
    for (uint32_t round = 0; round < 5; round++) {
        launch(stream, device, 3);
        CHECK(hipMemcpyAsync(state.pinned, device, COUNT * 4, hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamAddCallback(stream, called, &state, 0));
        // The next round must not start before the callback has looked.
    }
    CHECK(hipStreamSynchronize(stream));
    EXPECT(state.seen.size() == 10);
    report("callbacks", state.seen);
    CHECK(hipHostFree(state.pinned));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
}

static void priorities()
{
    uint32_t *device;
    CHECK(hipMalloc(&device, COUNT * 4 * 3));
    CHECK(hipMemset(device, 2, COUNT * 4 * 3));
    CHECK(hipDeviceSynchronize());
    hipStream_t stream[3];
    for (int i = 0; i < 3; i++) {
        CHECK(hipStreamCreateWithPriority(&stream[i], hipStreamNonBlocking, i - 1));
        for (int n = 0; n < 4; n++) launch(stream[i], device + i * COUNT, 3 + i);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(hipStreamSynchronize(stream[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    report_device("priorities", device, COUNT * 3);
    CHECK(hipFree(device));
}

static void values()
{
    hipStream_t stream;
    uint32_t *host;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipHostMalloc((void **)&host, 4096, hipHostMallocDefault));
    memset(host, 0, 4096);
    CHECK(hipStreamWriteValue32(stream, host, 0xabcd, 0));
    CHECK(hipStreamWriteValue64(stream, host + 2, 0x123456789abcull, 0));
    CHECK(hipStreamSynchronize(stream));
    report("written values", host, 64);
    CHECK(hipHostFree(host));
    CHECK(hipStreamDestroy(stream));
}

#ifdef __HIPCC__
static void times()
{
    hipEvent_t a, b, c;
    uint32_t *device;
    float first = -1, second = -1, both = -1;
    CHECK(hipEventCreate(&a));
    CHECK(hipEventCreate(&b));
    CHECK(hipEventCreate(&c));
    CHECK(hipMalloc(&device, COUNT * 4));
    CHECK(hipMemset(device, 0, COUNT * 4));
    CHECK(hipEventRecord(a, 0));
    for (int i = 0; i < 20; i++) launch(0, device, 3);
    CHECK(hipEventRecord(b, 0));
    for (int i = 0; i < 20; i++) launch(0, device, 3);
    CHECK(hipEventRecord(c, 0));
    CHECK(hipEventSynchronize(c));
    CHECK(hipEventElapsedTime(&first, a, b));
    CHECK(hipEventElapsedTime(&second, b, c));
    CHECK(hipEventElapsedTime(&both, a, c));
    EXPECT(first > 0 && second > 0 && both < 60000);
    EXPECT(both > (first + second) * 0.99f && both < (first + second) * 1.01f + 0.01f);
    for (hipEvent_t event : {a, b, c}) CHECK(hipEventDestroy(event));
    CHECK(hipFree(device));
}
#endif

int main()
{
    in_one_stream();
    between_streams();
    null_stream();
    callbacks();
    priorities();
    values();
#ifdef __HIPCC__
    times();
#endif
    return 0;
}
