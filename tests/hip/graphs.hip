// Graphs, built node by node and captured: kernels, copies, fills, children, forks within a capture; launched repeatedly. No host functions:
// those of HIP 5.2 run before their predecessors have ended, and corrupt its heap when the graph is launched again.
#include "common.h"

static const size_t COUNT = 5000;

__global__ void step(uint32_t *data, size_t count, uint32_t factor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * factor + (uint32_t)i;
}

__global__ void join(uint32_t *data, const uint32_t *other, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) data[i] ^= other[i] * 3;
}

static const dim3 GRID((COUNT + 127) / 128), GROUP(128);

#ifdef __HIPCC__
template <class... A> hipError_t add_kernel(hipGraphNode_t *node, hipGraph_t graph, const std::vector<hipGraphNode_t> &after,
                                           void (*kernel)(A...), A... arguments)
{
    void *parameters[] = {&arguments...};
    hipKernelNodeParams given = {};
    given.func = (void *)kernel;
    given.gridDim = GRID;
    given.blockDim = GROUP;
    given.kernelParams = parameters;
    return hipGraphAddKernelNode(node, graph, after.data(), after.size(), &given);
}
template <class... A> hipError_t set_kernel(hipGraphExec_t graph, hipGraphNode_t node, void (*kernel)(A...), A... arguments)
{
    void *parameters[] = {&arguments...};
    hipKernelNodeParams given = {};
    given.func = (void *)kernel;
    given.gridDim = GRID;
    given.blockDim = GROUP;
    given.kernelParams = parameters;
    return hipGraphExecKernelNodeSetParams(graph, node, &given);
}
#else
template <class... A> hipError_t add_kernel(hipGraphNode_t *node, hipGraph_t graph, const std::vector<hipGraphNode_t> &,
                                           void (*kernel)(A...), A... arguments)
{
    return host_add(node, graph, host_kernel_operation(kernel, GRID, GROUP, arguments...));
}
template <class... A> hipError_t set_kernel(hipGraphExec_t graph, hipGraphNode_t node, void (*kernel)(A...), A... arguments)
{
    return graph->operations[node] = host_kernel_operation(kernel, GRID, GROUP, arguments...), hipSuccess;
}
#endif

static uint32_t *pinned;
static void explicit_graph(hipStream_t stream)
{
    hipGraph_t graph, child;
    hipGraphNode_t fill, first, second, joined, back, inner, outer, end;
    hipGraphExec_t run;
    uint32_t *a, *b;
    CHECK(hipMalloc(&a, COUNT * 4));
    CHECK(hipMalloc(&b, COUNT * 4));
    CHECK(hipMemset(a, 1, COUNT * 4));
    CHECK(hipMemset(b, 0, COUNT * 4));
    CHECK(hipDeviceSynchronize());

    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphCreate(&child, 0));
    CHECK(add_kernel(&inner, child, {}, step, a, (size_t)COUNT, (uint32_t)17));
    hipMemsetParams set = {};
    set.dst = b, set.elementSize = 4, set.width = COUNT, set.height = 1, set.pitch = COUNT * 4, set.value = 0x01020304;
    CHECK(hipGraphAddMemsetNode(&fill, graph, nullptr, 0, &set));
    CHECK(add_kernel(&first, graph, {}, step, a, (size_t)COUNT, (uint32_t)3));
    CHECK(add_kernel(&second, graph, {fill}, step, b, (size_t)COUNT, (uint32_t)5));
    const uint32_t *other = b;
    hipGraphNode_t both[] = {first, second};
    hipGraphNode_t empty;
    CHECK(hipGraphAddEmptyNode(&empty, graph, both, 2));
    CHECK(add_kernel(&joined, graph, {empty}, join, a, other, (size_t)COUNT));
    CHECK(hipGraphAddChildGraphNode(&outer, graph, &joined, 1, child));
    CHECK(hipGraphAddMemcpyNode1D(&back, graph, &outer, 1, pinned, a, COUNT * 4, hipMemcpyDeviceToHost));
    CHECK(add_kernel(&end, graph, {back}, step, a, (size_t)COUNT, (uint32_t)7));
    size_t nodes = 0;
    CHECK(hipGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 8);

    CHECK(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 4; i++) CHECK(hipGraphLaunch(run, stream));
    CHECK(hipStreamSynchronize(stream));
    report_device("explicit", a, COUNT);
    // Other arguments, same graph.
    CHECK(set_kernel(run, first, step, a, (size_t)COUNT, (uint32_t)1001));
    CHECK(hipGraphLaunch(run, stream));
    CHECK(hipStreamSynchronize(stream));
    report_device("updated", a, COUNT);
    CHECK(hipGraphExecDestroy(run));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipGraphDestroy(child));
    CHECK(hipFree(a));
    CHECK(hipFree(b));
}

static void captured_graph(hipStream_t stream, hipStream_t side)
{
    hipGraph_t graph;
    hipGraphExec_t run;
    hipEvent_t fork, back;
    uint32_t *a, *b;
    CHECK(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    CHECK(hipEventCreateWithFlags(&back, hipEventDisableTiming));
    CHECK(hipMalloc(&a, COUNT * 4));
    CHECK(hipMalloc(&b, COUNT * 4));
    auto in = random_vector(COUNT, 31);
    memcpy(pinned, in.data(), COUNT * 4);

    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMemcpyAsync(a, pinned, COUNT * 4, hipMemcpyHostToDevice, stream));
    CHECK(hipEventRecord(fork, stream));
    CHECK(hipStreamWaitEvent(side, fork, 0));
    CHECK(hipMemsetAsync(b, 0x33, COUNT * 4, side));
    hipLaunchKernelGGL(step, GRID, GROUP, 0, side, b, COUNT, 9u);
    hipLaunchKernelGGL(step, GRID, GROUP, 0, stream, a, COUNT, 11u);
    CHECK(hipEventRecord(back, side));
    CHECK(hipStreamWaitEvent(stream, back, 0));
    hipLaunchKernelGGL(join, GRID, GROUP, 0, stream, a, (const uint32_t *)b, COUNT);
    CHECK(hipMemcpyAsync(pinned, a, COUNT * 4, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamEndCapture(stream, &graph));
#ifndef __HIPCC__
    side->capture.reset();
#endif
    // Nothing has run yet.
    report("captured, not launched", pinned, COUNT * 4);
    CHECK(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 3; i++) CHECK(hipGraphLaunch(run, stream));
    CHECK(hipStreamSynchronize(stream));
    report("captured", pinned, COUNT * 4);
    CHECK(hipGraphExecDestroy(run));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(a));
    CHECK(hipFree(b));
}

static void long_graph(hipStream_t stream)
{
    hipGraph_t graph;
    hipGraphExec_t run;
    uint32_t *a;
    CHECK(hipMalloc(&a, COUNT * 4));
    CHECK(hipMemset(a, 0, COUNT * 4));
    CHECK(hipDeviceSynchronize());
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (uint32_t i = 0; i < 100; i++) hipLaunchKernelGGL(step, GRID, GROUP, 0, stream, a, COUNT, i | 1);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(run, stream));
    CHECK(hipStreamSynchronize(stream));
    report_device("a hundred nodes", a, COUNT);
    CHECK(hipGraphExecDestroy(run));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(a));
}

int main()
{
    hipStream_t stream, side;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipStreamCreate(&side));
    CHECK(hipHostMalloc((void **)&pinned, COUNT * 4, hipHostMallocDefault));
    explicit_graph(stream);
    captured_graph(stream, side);
    long_graph(stream);
    CHECK(hipHostFree(pinned));
    CHECK(hipStreamDestroy(side));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
