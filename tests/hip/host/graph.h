// Graphs: a list of operations in the order in which they were added, which is one of the orders that their edges allow.
#pragma once

typedef HostGraph *hipGraph_t;
typedef HostGraph *hipGraphExec_t;
typedef size_t hipGraphNode_t;
enum hipStreamCaptureMode { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed };

inline hipError_t hipGraphCreate(hipGraph_t *graph, unsigned) { return *graph = new HostGraph, hipSuccess; }
inline hipError_t hipGraphDestroy(hipGraph_t graph) { return delete graph, hipSuccess; }
inline hipError_t hipGraphExecDestroy(hipGraphExec_t graph) { return delete graph, hipSuccess; }
inline hipError_t hipGraphInstantiate(hipGraphExec_t *made, hipGraph_t graph, hipGraphNode_t *, char *, size_t)
{
    return *made = new HostGraph(*graph), hipSuccess;
}
inline hipError_t hipGraphClone(hipGraph_t *made, hipGraph_t graph) { return *made = new HostGraph(*graph), hipSuccess; }
inline hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t)
{
    for (auto &operation : graph->operations) operation();
    return hipSuccess;
}
inline hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *, size_t *count)
{
    return *count = graph->operations.size(), hipSuccess;
}
inline hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode)
{
    return stream->capture = std::make_shared<HostGraph>(), hipSuccess;
}
inline hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
    *graph = new HostGraph(*stream->capture);
    stream->capture.reset();
    return hipSuccess;
}

inline hipError_t host_add(hipGraphNode_t *node, hipGraph_t graph, HostOperation operation)
{
    *node = graph->operations.size();
    graph->operations.push_back(operation);
    return hipSuccess;
}
inline hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *, size_t, void *to,
                                          const void *from, size_t bytes, hipMemcpyKind)
{
    return host_add(node, graph, [=] { memmove(to, from, bytes); });
}
struct hipMemsetParams { void *dst; unsigned elementSize; size_t height, pitch; unsigned value; size_t width; };
inline hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *, size_t, const hipMemsetParams *given)
{
    hipMemsetParams p = *given;
    return host_add(node, graph, [=] {
        for (size_t y = 0; y < p.height; y++)
            for (size_t x = 0; x < p.width; x++)
                memcpy((char *)p.dst + y * p.pitch + x * p.elementSize, &p.value, p.elementSize);
    });
}
inline hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *, size_t)
{
    return host_add(node, graph, [] {});
}
inline hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *, size_t, hipGraph_t child)
{
    HostGraph copy = *child;
    return host_add(node, graph, [=] { for (auto &operation : copy.operations) operation(); });
}

template <class... P, class... A> HostOperation host_kernel_operation(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments)
{
    return [=] { host_run(grid, block, 0, [=] { kernel((P)arguments...); }); };
}
