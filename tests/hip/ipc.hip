// Two processes share device memory and events by handle. They fork before either touches HIP, and talk over pipes.
#include "common.h"
#include <sys/wait.h>
#include <unistd.h>

static const size_t COUNT = 30000;

__global__ void step(uint32_t *data, size_t count, uint32_t factor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * factor + (uint32_t)i;
}

static void launch(uint32_t *data, uint32_t factor, hipStream_t stream)
{
    hipLaunchKernelGGL(step, dim3((COUNT + 255) / 256), dim3(256), 0, stream, data, COUNT, factor);
}

struct Pipes {
    int in, out;
    template <class T> void send(const T &what) { EXPECT(write(out, &what, sizeof what) == sizeof what); }
    template <class T> T receive()
    {
        T what;
        EXPECT(read(in, &what, sizeof what) == sizeof what);
        return what;
    }
};

struct Handles {
    hipIpcMemHandle_t memory;
    hipIpcEventHandle_t event;
};

static int exporter(Pipes other)
{
    uint32_t *data;
    hipEvent_t event;
    hipStream_t stream;
    Handles handles;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&data, COUNT * 4));
    CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess));
    CHECK(hipMemset(data, 3, COUNT * 4));
    CHECK(hipDeviceSynchronize());
    CHECK(hipIpcGetMemHandle(&handles.memory, data));
    CHECK(hipIpcGetEventHandle(&handles.event, event));
    other.send(handles);
    for (uint32_t round = 0; round < 8; round++) {
        launch(data, 5 + round, stream);
        CHECK(hipEventRecord(event, stream));
        other.send('g');
        EXPECT(other.receive<char>() == 'b');
    }
    report_device("after eight rounds", data, COUNT);
    EXPECT(other.receive<char>() == 'c'); // closed
    CHECK(hipFree(data));
    CHECK(hipEventDestroy(event));
    CHECK(hipStreamDestroy(stream));
    return 0;
}

static int importer(Pipes other)
{
    uint32_t *data;
    hipEvent_t event;
    hipStream_t stream;
    Handles handles = other.receive<Handles>();
    CHECK(hipStreamCreate(&stream));
    CHECK(hipIpcOpenMemHandle((void **)&data, handles.memory, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipIpcOpenEventHandle(&event, handles.event));
    for (uint32_t round = 0; round < 8; round++) {
        EXPECT(other.receive<char>() == 'g');
        // On the device, or on the host.
        if (round % 2) CHECK(hipEventSynchronize(event));
        else CHECK(hipStreamWaitEvent(stream, event, 0));
        launch(data, 100 + round, stream);
        CHECK(hipStreamSynchronize(stream));
        other.send('b');
    }
    report_device("as the importer sees it", data, COUNT);
    CHECK(hipIpcCloseMemHandle(data));
    other.send('c');
    CHECK(hipEventDestroy(event));
    CHECK(hipStreamDestroy(stream));
    return 0;
}

int main()
{
    int there[2], back[2];
    EXPECT(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) return importer({there[0], back[1]});
    // Whoever waits for a dead process must see the pipe end.
    close(there[0]);
    close(back[1]);
    int status = 0, result = exporter({back[0], there[1]});
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return result;
}
