/* What a thread without a current context may do, as seen on an H200 (driver 580): calls that name a stream, an event, a function or a
 * module work by that handle alone; calls that name none, and default streams, need a current context. Progress threads of MPI layers
 * live by that. A kernel's handle (CUkernel) is launched in the context of the stream, whichever is current. After a fault the same
 * calls give the fault.
 *
 *   any_thread
 */
#include "world.h"

#include <pthread.h>

enum { WORDS = 1024, INVALID_CONTEXT = CUDA_ERROR_INVALID_CONTEXT };

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .u32 variable = 41;\n"
    ".visible .entry store(.param .u64 to, .param .u32 value)\n"
    "{ .reg .u64 %t; .reg .u32 %v; ld.param.u64 %t, [to]; ld.param.u32 %v, [value]; st.global.u32 [%t], %v; ret; }\n"
    ".visible .entry trap_here() { trap; ret; }\n";

static CUdeviceptr memory;
static unsigned *pinned;
static CUstream stream;
static CUevent event, timed[2];
static CUmodule module;
static CUfunction function, trap_function;
static CUlibrary library;
static CUkernel kernel;
static CUgraphExec exec;
static CUgraph graph;

static unsigned word(int index) {
    unsigned value = 0;
    OK(cuMemcpyDtoHAsync(pinned + 512, memory + 4 * (unsigned)index, 4, stream));
    OK(cuStreamSynchronize(stream));
    __atomic_load(pinned + 512, &value, __ATOMIC_ACQUIRE);
    return value;
}

static void is(int index, unsigned wanted) {
    unsigned value = word(index);
    if (value != wanted) DIE("word %d is %u, not %u", index, value, wanted);
}

static void launch(CUfunction what, CUstream where, CUdeviceptr to, unsigned value) {
    void *arguments[] = {&to, &value};
    OK(cuLaunchKernel(what, 1, 1, 1, 1, 1, 1, 0, where, arguments, NULL));
}

/* Everything that works by a handle, with its data. */
static void by_handle(void) {
    CUcontext owner = NULL;
    CUdeviceptr block = 0, at = 0;
    CUfunction found = NULL;
    CUgraph captured = NULL;
    CUstreamCaptureStatus status;
    size_t size = 0;
    unsigned flags, count = 0, *words = pinned;
    unsigned long long id;
    int number;
    float ms;
    for (unsigned i = 0; i < WORDS / 4; i++) words[i] = 7 * i + 3;
    OK(cuMemcpyHtoDAsync(memory, words, WORDS, stream));
    OK(cuMemcpyAsync(memory + 2048, memory + 4, 8, stream));
    OK(cuMemsetD32Async(memory + 2056, 55, 2, stream));
    OK(cuStreamWriteValue32(stream, memory + 2064, 66, 0));
    OK(cuStreamWaitValue32(stream, memory + 2064, 66, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64(stream, memory + 2072, 77, 0));
    launch(function, stream, memory + 2080, 88);
    launch((CUfunction)kernel, stream, memory + 2084, 99);
    is(100, 703), is(512, 10), is(513, 17), is(514, 55), is(515, 55), is(516, 66), is(518, 77), is(520, 88), is(521, 99);
    OK(cuMemAllocAsync(&block, 4096, stream));
    OK(cuMemsetD32Async(block, 111, 4, stream));
    /* A pool is closed to the other device, which is asked for where its context is current; contexts that are named are open (recorded). */
    OK(cuCtxGetCurrent(&owner));
    const int refused = owner && owner != context ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    GIVES(refused, cuMemcpyAsync(memory, block, 4, stream));
    OK(cuMemcpyPeerAsync(memory + 4, context, block, context, 4, stream));
    OK(cuMemFreeAsync(block, stream));
    is(1, 111);
    if (!refused) is(0, 111);
    OK(cuEventRecord(timed[0], stream));
    launch(function, stream, memory, 112);
    OK(cuEventRecord(timed[1], stream));
    OK(cuStreamWaitEvent(stream, timed[1], 0));
    OK(cuEventSynchronize(timed[1]));
    OK(cuEventQuery(timed[1]));
    OK(cuEventElapsedTime(&ms, timed[0], timed[1]));
    if (!(ms > 0)) DIE("%f ms", (double)ms);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamIsCapturing(stream, &status));
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) DIE("not captured");
    OK(cuMemsetD32Async(memory, 0, 1, stream));
    OK(cuStreamEndCapture(stream, &captured));
    OK(cuGraphGetNodes(captured, NULL, &size));
    if (size != 1) DIE("%zu nodes", size);
    OK(cuGraphDestroy(captured));
    is(0, 112);
    OK(cuGraphUpload(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    is(1, 1234);
    OK(cuStreamGetCtx(stream, &owner));
    if (owner != context) DIE("another context");
    OK(cuStreamGetFlags(stream, &flags));
    OK(cuStreamGetPriority(stream, &number));
    OK(cuStreamGetId(stream, &id));
    OK(cuModuleGetFunction(&found, module, "store"));
    OK(cuModuleGetFunctionCount(&count, module));
    OK(cuModuleGetGlobal(&at, &size, module, "variable"));
    if (count != 2 || size != 4) DIE("%u functions, %zu bytes", count, size);
    OK(cuMemcpyAsync(memory, at, 4, stream));
    is(0, 41);
    OK(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* What names nothing needs a current context: the code of each without one, or after a fault. */
static void without_handle(int wanted) {
    CUdeviceptr at;
    CUevent made;
    CUstream fresh;
    CUmodule loaded;
    CUgraphExec instantiated;
    CUstreamCaptureStatus status;
    CUipcMemHandle handle;
    size_t size;
    unsigned flags;
    int number;
    GIVES(wanted, cuMemAlloc(&at, 64));
    GIVES(wanted, cuMemGetAddressRange(&at, &size, memory));
    GIVES(wanted, cuMemHostGetFlags(&flags, pinned));
    GIVES(wanted, cuMemcpyDtoH(pinned, memory, 4));
    GIVES(wanted, cuMemcpyAsync(memory, memory + 64, 4, NULL));
    GIVES(wanted, cuMemsetD32Async(memory, 0, 1, CU_STREAM_LEGACY));
    GIVES(wanted, cuMemsetD32Async(memory, 0, 1, CU_STREAM_PER_THREAD));
    GIVES(wanted, cuMemGetHandleForAddressRange(&number, memory, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    GIVES(wanted, cuIpcGetMemHandle(&handle, memory));
    GIVES(wanted, cuIpcCloseMemHandle(memory));
    GIVES(wanted, cuStreamCreate(&fresh, 0));
    GIVES(wanted, cuStreamQuery(stream));
    GIVES(wanted, cuStreamQuery(NULL));
    GIVES(wanted, cuStreamSynchronize(NULL));
    GIVES(wanted, cuStreamIsCapturing(NULL, &status));
    GIVES(wanted, cuStreamWaitEvent(NULL, event, 0));
    GIVES(wanted, cuStreamWriteValue32(NULL, memory, 1, 0));
    GIVES(wanted, cuEventCreate(&made, 0));
    GIVES(wanted, cuEventRecord(event, NULL));
    GIVES(wanted, cuModuleLoadData(&loaded, ptx));
    GIVES(wanted, cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, 0));
    GIVES(wanted, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    GIVES(wanted, cuGraphInstantiate(&instantiated, graph, 0));
    GIVES(wanted, cuGraphLaunch(exec, NULL));
    GIVES(wanted, cuCtxSynchronize());
}

static void *no_context(void *unused) {
    CUcontext current = (CUcontext)1;
    OK(cuCtxGetCurrent(&current));
    if (current) DIE("a new thread has a context");
    by_handle();
    without_handle(INVALID_CONTEXT);
    /* What is no handle of memory is seen before a context is missed. */
    CUdeviceptr opened;
    CUipcMemHandle none = {{0}};
    GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&opened, none, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return unused;
}

/* The same while a context of another device is current, and a kernel's handle in that device's stream. */
static void *other_context(void *unused) {
    CUdevice second;
    CUcontext other, current;
    CUdeviceptr there;
    CUstream its_stream;
    unsigned value = 0;
    if (devices < 2) return unused;
    OK(cuDeviceGet(&second, 1));
    OK(cuDevicePrimaryCtxRetain(&other, second));
    OK(cuCtxSetCurrent(other));
    by_handle();
    OK(cuMemAlloc(&there, 64));
    OK(cuStreamCreate(&its_stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(context));
    launch((CUfunction)kernel, its_stream, there, 4321);
    OK(cuStreamSynchronize(its_stream));
    OK(cuMemcpyDtoH(&value, there, 4));
    if (value != 4321) DIE("the other device's word is %u", value);
    void *arguments[] = {&there, &value};
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, its_stream, arguments, NULL));
    OK(cuCtxGetCurrent(&current));
    if (current != context) DIE("another context is current");
    OK(cuStreamDestroy(its_stream));
    OK(cuMemFree(there));
    OK(cuDevicePrimaryCtxRelease(second));
    return unused;
}

/* Ends what a thread without a context may end. */
static void *ends(void *unused) {
    CUevent gone = timed[0];
    OK(cuEventDestroy(timed[0]));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(gone));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuModuleUnload(module));
    OK(cuStreamDestroy(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    OK(cuMemFree(memory));
    OK(cuMemFreeHost(pinned));
    return unused;
}

static void *after_fault(void *unused) {
    unsigned flags;
    int number;
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuMemsetD32Async(memory, 0, 1, stream));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuEventQuery(event));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    OK(cuCtxSetCurrent(context));
    without_handle(CUDA_ERROR_LAUNCH_FAILED);
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuMemHostUnregister(&number));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuCtxGetApiVersion(NULL, &flags));
    OK(cuCtxGetApiVersion(context, &flags));
    OK(cuCtxSetFlags(0));
    return unused;
}

static void in_a_thread(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) || pthread_join(thread, NULL)) DIE("no thread");
}

static void make(void) {
    CUgraphNode node;
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 4, .value = 1234, .width = 1, .height = 1};
    use_device();
    OK(cuMemAlloc(&memory, 4 * WORDS));
    OK(cuMemAllocHost((void **)&pinned, 4 * WORDS));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 2; i++) OK(cuEventCreate(&timed[i], 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "store"));
    OK(cuModuleGetFunction(&trap_function, module, "trap_here"));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "store"));
    OK(cuGraphCreate(&graph, 0));
    fill.dst = memory + 4;
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
    OK(cuGraphInstantiate(&exec, graph, 0));
}

static void body(void) {
    make();
    if (me == 0) {
        in_a_thread(no_context);
        in_a_thread(other_context);
        in_a_thread(ends);
        return;
    }
    OK(cuLaunchKernel(trap_function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    in_a_thread(after_fault);
}

int main(void) {
    if (run_ranks(body, 60)) return 1;
    printf("any_thread ok\n");
    return 0;
}
