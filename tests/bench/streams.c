/* Streams: launches, events, queries, small copies, memory operations, graphs, callbacks. Built once per runtime.
 * What a call costs its caller is its thread's own time (CPU), with the device's work ended between batches; what
 * is waited for is the time on the clock. */
#include "measure.h"
#include "api.h"

extern const void *kernel_empty(void), *kernel_four(void); /* kernels.cu */
static gpu_stream stream, other;
static void *address;

static int launch(gpu_stream on)
{
    dim3 one = {1, 1, 1};
    void *none[] = {NULL};
    return (int)GPU(LaunchKernel)(kernel_empty(), one, one, none, 0, on);
}

static int launch_four(gpu_stream on)
{
    dim3 grid = {8, 1, 1}, block = {64, 1, 1};
    long b = 5;
    float c = 1;
    int d = 7;
    void *arguments[] = {&address, &b, &c, &d};
    return (int)GPU(LaunchKernel)(kernel_four(), grid, block, arguments, 0, on);
}

static int finish(void) { return (int)GPU(StreamSynchronize)(stream); }

static void launches(void)
{
    MUST(launch(stream) | launch_four(stream) | finish());
    MEASURE_BETWEEN(CPU, "kernel launch (CPU)", "empty kernel, issue cost only (100 in flight), ns per launch / median_ns", 41, 100, MUST(finish()),
                    launch(stream));
    MEASURE_BETWEEN(CPU, "kernel launch with 4 arguments (CPU)", "", 41, 100, MUST(finish()), launch_four(stream));
    MEASURE_BETWEEN(CPU, "kernel launch, NULL stream (CPU)", "", 41, 100, MUST(GPU(DeviceSynchronize)()), launch(NULL));
    MEASURE(WALL, "kernel launch+streamSynchronize", "empty kernel launch+cudaStreamSynchronize", 201, 1, launch(stream) | finish());
    MEASURE(WALL, "kernel launch+deviceSynchronize", "empty kernel launch+cudaDeviceSynchronize", 201, 1,
            launch(stream) | (int)GPU(DeviceSynchronize)());
    double times[9];
    for (int sample = -1; sample < 9; sample++) {
        double start = now(WALL);
        for (int i = 0; i < 1000; i++) MUST(launch(stream));
        MUST(finish());
        if (sample >= 0) times[sample] = (now(WALL) - start) / 1000;
        else keep_apart();
    }
    result("1000 launches+streamSynchronize, per launch", 0, median(times, 9),
           "empty kernel, 1000 back to back + sync, ns per launch / median_ns");
}

static int create_event(void)
{
    gpu_event event;
    int error = (int)GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming));
    return error ? error : (int)GPU(EventDestroy)(event);
}

static void events(void)
{
    gpu_event plain, timed, done;
    MUST(GPU(EventCreateWithFlags)(&plain, GPU(EventDisableTiming)));
    MUST(GPU(EventCreateWithFlags)(&done, GPU(EventDisableTiming)));
    MUST(GPU(EventCreate)(&timed));
    MEASURE_BETWEEN(CPU, "eventRecord, no timing (CPU)", "cudaEventRecord (disable timing)", 41, 100, MUST(finish()),
                    GPU(EventRecord)(plain, stream));
    MEASURE_BETWEEN(CPU, "eventRecord, timing (CPU)", "cudaEventRecord (timing)", 41, 100, MUST(finish()), GPU(EventRecord)(timed, stream));
    MEASURE_BETWEEN(CPU, "launch+eventRecord, no timing (CPU)", "", 41, 100, MUST(finish()),
                    launch(stream) | (int)GPU(EventRecord)(plain, stream));
    MUST(launch(stream) | (int)GPU(EventRecord)(done, stream) | finish());
    MEASURE(CPU, "eventQuery, done (CPU)", "cudaEventQuery done", 41, 1000, GPU(EventQuery)(done));
    MEASURE(CPU, "eventSynchronize, done (CPU)", "", 41, 1000, GPU(EventSynchronize)(done));
    MEASURE(CPU, "streamWaitEvent, done (CPU)", "cudaStreamWaitEvent", 41, 100, GPU(StreamWaitEvent)(other, done, 0));
    MUST(GPU(StreamSynchronize)(other));
    MEASURE_BETWEEN(CPU, "launch+eventRecord+streamWaitEvent across streams (CPU)", "", 41, 50, MUST(GPU(DeviceSynchronize)()),
                    launch(stream) | (int)GPU(EventRecord)(plain, stream) | (int)GPU(StreamWaitEvent)(other, plain, 0));
    MEASURE(WALL, "eventRecord+eventSynchronize", "cudaEventRecord+cudaEventSynchronize", 201, 1,
            (int)GPU(EventRecord)(plain, stream) | (int)GPU(EventSynchronize)(plain));
    MEASURE(WALL, "launch+eventRecord+eventSynchronize", "", 201, 1,
            launch(stream) | (int)GPU(EventRecord)(plain, stream) | (int)GPU(EventSynchronize)(plain));
    MEASURE(CPU, "eventCreate+destroy (CPU)", "cudaEventCreate+Destroy", 41, 100, create_event());
}

static int create_stream(void)
{
    gpu_stream made;
    int error = (int)GPU(StreamCreateWithFlags)(&made, GPU(StreamNonBlocking));
    return error ? error : (int)GPU(StreamDestroy)(made);
}

static void queries(void)
{
    MUST(launch(stream) | finish());
    MEASURE(CPU, "streamQuery, idle (CPU)", "cudaStreamQuery idle", 41, 1000, GPU(StreamQuery)(stream));
    MEASURE(CPU, "streamQuery, NULL stream idle (CPU)", "cudaStreamQuery(0) idle", 41, 1000, GPU(StreamQuery)(NULL));
    MEASURE(CPU, "streamSynchronize, idle (CPU)", "cudaStreamSynchronize idle", 41, 1000, finish());
    MEASURE(CPU, "deviceSynchronize, idle (CPU)", "cudaDeviceSynchronize idle", 41, 1000, GPU(DeviceSynchronize)());
    MEASURE(WALL, "streamCreate+destroy", "cudaStreamCreate+Destroy", 41, 10, create_stream());
}

static void copies(void)
{
    char *device, *pinned, pageable[64] = {0};
    MUST(GPU(Malloc)((void **)&device, 1 << 20));
    MUST(GPU(MallocHost)((void **)&pinned, 1 << 20));
    enum { up = GPU(MemcpyHostToDevice), down = GPU(MemcpyDeviceToHost), across = GPU(MemcpyDeviceToDevice) };
    MEASURE_BETWEEN(CPU, "memcpyAsync of 8 B, pinned to device (CPU)", "cudaMemcpyAsync H2D 8 B pinned, issue (50 in flight)", 41, 50, MUST(finish()),
                    GPU(MemcpyAsync)(device, pinned, 8, up, stream));
    MEASURE_BETWEEN(CPU, "memcpyAsync of 8 B, device to pinned (CPU)", "cudaMemcpyAsync D2H 8 B pinned, issue (50 in flight)", 41, 50, MUST(finish()),
                    GPU(MemcpyAsync)(pinned, device, 8, down, stream));
    MEASURE_BETWEEN(CPU, "memcpyAsync of 8 B, device to device (CPU)", "", 41, 50, MUST(finish()),
                    GPU(MemcpyAsync)(device, device + 4096, 8, across, stream));
    MEASURE_BETWEEN(CPU, "memsetAsync of 8 B (CPU)", "", 41, 50, MUST(finish()), GPU(MemsetAsync)(device, 1, 8, stream));
    MEASURE(WALL, "memcpyAsync of 8 B, pinned to device+sync", "cudaMemcpyAsync H2D 8 B pinned + sync", 201, 1,
            (int)GPU(MemcpyAsync)(device, pinned, 8, up, stream) | finish());
    MEASURE(WALL, "memcpyAsync of 8 B, device to pinned+sync", "cudaMemcpyAsync D2H 8 B pinned + sync", 201, 1,
            (int)GPU(MemcpyAsync)(pinned, device, 8, down, stream) | finish());
    MEASURE(WALL, "memcpyAsync of 8 B, device to device+sync", "cudaMemcpy D2D 8 B + sync", 201, 1,
            (int)GPU(MemcpyAsync)(device, device + 4096, 8, across, stream) | finish());
    MEASURE(WALL, "memcpy of 8 B, pageable to device", "cudaMemcpy H2D 8 B pageable", 201, 1, GPU(Memcpy)(device, pageable, 8, up));
    MEASURE(WALL, "memcpy of 8 B, device to pageable", "cudaMemcpy D2H 8 B pageable", 201, 1, GPU(Memcpy)(pageable, device, 8, down));
    MEASURE(WALL, "memsetAsync of 8 B+sync", "cudaMemsetAsync 8 B + sync", 201, 1, (int)GPU(MemsetAsync)(device, 1, 8, stream) | finish());
    MEASURE(WALL, "memcpyAsync of 1 MiB, pinned to device+sync", "cudaMemcpyAsync H2D 1 MiB pinned + sync", 41, 1,
            (int)GPU(MemcpyAsync)(device, pinned, 1 << 20, up, stream) | finish());
    MUST(GPU(Free)(device));
    MUST(GPU(FreeHost)(pinned));
}

/* One link of a chain on one stream: a kernel, a copy behind it, and the next link's kernel behind the copy. */
static int link_of_chain(void *to, const void *from, size_t size, int kind)
{
    return launch(stream) | (int)GPU(MemcpyAsync)(to, from, size, kind, stream);
}

static int chain(int links, void *to, const void *from, size_t size, int kind)
{
    int error = 0;
    for (int i = 0; i < links; i++) error |= link_of_chain(to, from, size, kind);
    return error | launch(stream) | finish();
}

/* Copies between kernels: what an iteration of a solver does that sends a few numbers, or its halo, each time. */
static void chains(void)
{
    enum { up = GPU(MemcpyHostToDevice), down = GPU(MemcpyDeviceToHost), across = GPU(MemcpyDeviceToDevice), large = 1 << 20 };
    char *device, *pinned;
    MUST(GPU(Malloc)((void **)&device, 2 * large));
    MUST(GPU(MallocHost)((void **)&pinned, large));
    static const struct {
        const char *name;
        int links, size, kind;
    } all[] = {
        {"kernel, 8 B pinned to device, kernel, sync", 1, 8, up},
        {"kernel, 8 B device to pinned, kernel, sync", 1, 8, down},
        {"kernel, 8 B device to device, kernel, sync", 1, 8, across},
        {"kernel, 1 MiB pinned to device, kernel, sync", 1, large, up},
        {"kernel, 1 MiB device to device, kernel, sync", 1, large, across},
        {"20 times kernel, 8 B pinned to device, then sync", 20, 8, up},
        {"20 times kernel, 8 B device to pinned, then sync", 20, 8, down},
        {"20 times kernel, 8 B device to device, then sync", 20, 8, across},
        {"20 times kernel, 64 KiB device to pinned, then sync", 20, 1 << 16, down},
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        void *to = all[c].kind == down ? pinned : device;
        const void *from = all[c].kind == up ? pinned : device + (all[c].kind == across ? large : 0);
        MEASURE(WALL, all[c].name, "", 61, 1, chain(all[c].links, to, from, (size_t)all[c].size, all[c].kind));
    }
    MUST(GPU(Free)(device));
    MUST(GPU(FreeHost)(pinned));
}

static void memory_operations(void)
{
    uint32_t *pinned, *device;
    MUST(GPU(MallocHost)((void **)&pinned, 4096));
    MUST(GPU(Malloc)((void **)&device, 4096));
    memset(pinned, 0, 4096);
    device_pointer at = (device_pointer)pinned, there = (device_pointer)device;
    MEASURE_BETWEEN(CPU, "streamWriteValue32, pinned (CPU)", "cuStreamWriteValue64 host, issue (50 in flight)", 41, 50, MUST(finish()),
                    DRIVER(StreamWriteValue32)(stream, at, 1, 0));
    MEASURE_BETWEEN(CPU, "streamWriteValue32, device (CPU)", "cuStreamWriteValue64 device, issue (50 in flight)", 41, 50, MUST(finish()),
                    DRIVER(StreamWriteValue32)(stream, there, 1, 0));
    MEASURE(WALL, "streamWriteValue32, pinned+sync", "cuStreamWriteValue64 + sync", 201, 1,
            (int)DRIVER(StreamWriteValue32)(stream, at, 1, 0) | finish());
#ifndef HIP
    /* HIP 5.2 waits on memory of its own kind only (signal memory). */
    device_pointer waited = at;
#else
    void *waited = NULL;
    if (hipExtMallocWithFlags(&waited, 8, hipMallocSignalMemory)) waited = NULL;
    if (waited) *(uint64_t *)waited = 1;
#endif
    MUST(finish());
    if (waited)
        MEASURE_BETWEEN(CPU, "streamWaitValue32, satisfied (CPU)", "cuStreamWaitValue32 satisfied, issue (50 in flight)", 41, 50, MUST(finish()),
                        stream_wait32(stream, waited, 1));
    MUST(GPU(Free)(device));
    MUST(GPU(FreeHost)(pinned));
}

static void graphs(void)
{
    static const int sizes[] = {1, 100};
    for (int s = 0; s < 2; s++) {
        GPU(Graph_t) graph;
        GPU(GraphExec_t) run;
        char name[64], h200[64];
        snprintf(name, sizeof name, "graphLaunch of %d kernel%s+sync", sizes[s], s ? "s" : "");
        snprintf(h200, sizeof h200, "cudaGraphLaunch+sync, %d empty kernels in a chain", sizes[s]);
        int error = (int)GPU(StreamBeginCapture)(stream, GPU(StreamCaptureModeThreadLocal));
        if (error) {
            result(name, error, 0, h200);
            continue;
        }
        for (int i = 0; i < sizes[s]; i++) MUST(launch(stream));
        MUST(GPU(StreamEndCapture)(stream, &graph));
        MUST(GPU(GraphInstantiateOf)(&run, graph));
        MEASURE(WALL, name, h200, 41, 1, (int)GPU(GraphLaunch)(run, stream) | finish());
        snprintf(name, sizeof name, "graphLaunch of %d kernel%s (CPU)", sizes[s], s ? "s" : "");
        MEASURE_BETWEEN(CPU, name, "", 41, 5, MUST(finish()), GPU(GraphLaunch)(run, stream));
        MUST(GPU(GraphExecDestroy)(run));
        MUST(GPU(GraphDestroy)(graph));
    }
}

static volatile int called;
#ifdef HIP
static void callback(hipStream_t on, hipError_t error, void *data)
#else
static void callback(cudaStream_t on, cudaError_t error, void *data)
#endif
{
    (void)on, (void)error, (void)data;
    called++;
}
static void function(void *data) { (void)data, called++; }

static void callbacks(void)
{
    MEASURE(WALL, "streamAddCallback+sync", "cudaLaunchHostFunc+sync", 101, 1, (int)GPU(StreamAddCallback)(stream, callback, NULL, 0) | finish());
    MEASURE_BETWEEN(CPU, "streamAddCallback (CPU)", "", 21, 20, MUST(finish()), GPU(StreamAddCallback)(stream, callback, NULL, 0));
    (void)function;
    MEASURE(WALL, "launchHostFunc+sync", "cudaLaunchHostFunc+sync", 101, 1, LAUNCH_HOST_FUNCTION(stream, function, NULL) | finish());
}

/* Without arguments all sections, else those named. */
int main(int count, char **names)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } sections[] = {{"launches", launches}, {"events", events}, {"queries", queries}, {"copies", copies}, {"chains", chains},
                    {"memops", memory_operations}, {"callbacks", callbacks}, {"graphs", graphs}};
    apart = true;
    MUST(GPU(SetDevice)(0));
    MUST(GPU(Free)(NULL));
    MUST(GPU(StreamCreateWithFlags)(&stream, GPU(StreamNonBlocking)));
    MUST(GPU(StreamCreateWithFlags)(&other, GPU(StreamNonBlocking)));
    MUST(GPU(Malloc)(&address, 4096));
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        bool wanted = count < 2 || !*names[1];
        for (int i = 1; i < count; i++) wanted |= !strcmp(names[i], sections[s].name);
        if (wanted) sections[s].run();
    }
    return 0;
}
