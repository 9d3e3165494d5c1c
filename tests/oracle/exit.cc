// Area 12: the end of a process. What each call answers from an exit handler, a static destructor, a destructor
// function, a thread's end and after dlclose; what becomes of work that is still running.
// Every scene is a process of its own that ends by exit(), quick_exit() or the return of its thread.
#include "kernels.h"
extern "C" cudaError_t cudaProfilerStop(); extern "C" CUresult cuProfilerStop();

static const char* g_hook = "";   // the hook that asks; the others stay silent
static void* g_dev; static void* g_host; static void* g_reg; static cudaStream_t g_s; static cudaEvent_t g_e;
static CUdeviceptr g_cu; static CUstream g_cs; static CUevent g_ce; static CUmodule g_m; static CUcontext g_ctx; static CUfunction g_f;
static cudaGraph_t g_graph; static cudaGraphExec_t g_x;
static bool g_runtime = true;

static void ask_runtime() {
  int n = -1; void* p = nullptr; unsigned v = 0; cudaPointerAttributes a = {}; size_t f, t; float ms; cudaStream_t s2; cudaEvent_t e2; cudaDeviceProp* dp = (cudaDeviceProp*)malloc(sizeof(cudaDeviceProp));
  RTK(cudaPeekAtLastError()); RT(cudaGetDeviceCount(&n), .i("n", n)); RT(cudaGetDevice(&n)); RT(cudaSetDevice(0)); RT(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0)); RT(cudaGetDeviceProperties(dp, 0)); RT(cudaDriverGetVersion(&n)); RT(cudaRuntimeGetVersion(&n));
  RT(cudaPointerGetAttributes(&a, g_dev), .i("type", a.type)); RT(cudaPointerGetAttributes(&a, g_host), .i("type", a.type)); RT(cudaMemGetInfo(&f, &t)); RT(cudaMalloc(&p, 64)); RT(cudaMallocHost(&p, 64)); RT(cudaMallocAsync(&p, 64, g_s));
  RT(cudaMemcpy(&v, g_dev, 4, cudaMemcpyDeviceToHost), .u("v", v)); RT(cudaMemcpyAsync(g_host, g_dev, 4, cudaMemcpyDeviceToHost, g_s)); RT(cudaMemset(g_dev, 0, 4)); RT(launch(&k_empty, 1, 1, 0, 0)); RT(launch(&k_empty, 1, 1, 0, g_s)); RT(cudaLaunchHostFunc(g_s, [](void*) {}, nullptr)); RT(cudaGraphLaunch(g_x, g_s));
  RT(cudaStreamCreate(&s2)); RT(cudaEventCreate(&e2)); RT(cudaEventQuery(g_e)); RT(cudaEventRecord(g_e, g_s)); RT(cudaEventSynchronize(g_e)); RT(cudaEventElapsedTime(&ms, g_e, g_e)); RT(cudaStreamWaitEvent(g_s, g_e, 0)); RT(cudaStreamQuery(g_s)); RT(cudaStreamQuery(0)); RT(cudaStreamSynchronize(g_s)); RT(cudaStreamSynchronize(0)); RT(cudaDeviceSynchronize());
  cudaFuncAttributes fa; RT(cudaFuncGetAttributes(&fa, &k_empty)); cudaIpcMemHandle_t h; RT(cudaIpcGetMemHandle(&h, g_dev)); RT(cudaHostGetDevicePointer(&p, g_host, 0)); void* r2 = aligned_alloc(4096, 4096); RT(cudaHostRegister(r2, 4096, 0));
  RT(cudaGraphExecDestroy(g_x)); RT(cudaGraphDestroy(g_graph)); RT(cudaEventDestroy(g_e)); RT(cudaStreamDestroy(g_s)); RT(cudaHostUnregister(g_reg)); RT(cudaFreeHost(g_host)); RT(cudaFree(g_dev)); RT(cudaFree(nullptr)); RT(cudaFree((void*)0x1234)); RT(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault)); RT(cudaProfilerStop()); RT(cudaDeviceReset()); RT(cudaGetLastError());
  NOTE("error text", .str("s", cudaGetErrorString(cudaErrorCudartUnloading)));
}
static void ask_driver() {
  int n = -1; CUcontext c = nullptr; CUdeviceptr p; CUstream s; CUevent e; size_t f, t; unsigned v = 0; unsigned mt = 99; CUmodule m; CUdevice d; const char* nm = nullptr;
  DR(cuInit(0)); DR(cuDeviceGetCount(&n), .i("n", n)); DR(cuDeviceGet(&d, 0)); DR(cuDriverGetVersion(&n)); DR(cuGetErrorName(CUDA_ERROR_DEINITIALIZED, &nm)); DR(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)); DR(cuCtxGetCurrent(&c), .i("null", c == 0)); DR(cuCtxSetCurrent(g_ctx)); DR(cuCtxGetDevice(&d)); DR(cuCtxSynchronize());
  DR(cuPointerGetAttribute(&mt, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, g_cu), .u("t", mt)); DR(cuMemGetInfo(&f, &t)); DR(cuMemAlloc(&p, 64)); DR(cuMemcpyDtoH(&v, g_cu, 4)); DR(cuLaunchKernel(g_f, 1, 1, 1, 1, 1, 1, 0, g_cs, nullptr, nullptr)); DR(cuStreamCreate(&s, 0)); DR(cuEventCreate(&e, 0)); DR(cuStreamQuery(g_cs)); DR(cuStreamSynchronize(g_cs)); DR(cuEventQuery(g_ce)); DR(cuEventRecord(g_ce, g_cs)); DR(cuStreamWriteValue32(g_cs, g_cu, 1, 0)); DR(cuModuleLoadData(&m, kPtx));
  DR(cuEventDestroy(g_ce)); DR(cuStreamDestroy(g_cs)); DR(cuModuleUnload(g_m)); DR(cuMemFree(g_cu)); DR(cuMemFree(0)); DR(cuProfilerStop()); DR(cuCtxDestroy(g_ctx)); DR(cuDevicePrimaryCtxRelease(0)); DR(cuDevicePrimaryCtxReset(0)); unsigned fl; int act; DR(cuDevicePrimaryCtxGetState(0, &fl, &act));
}
static void hook(const char* name) { if (strcmp(name, g_hook)) return; g_hook = ""; CASE(name); if (g_runtime) ask_runtime(); else ask_driver(); }

struct Static { ~Static() { hook("static dtor"); } };
static Static g_static;                                     // built before main, before any CUDA call
__attribute__((destructor)) static void at_fini() { hook("destructor fn"); }
struct ThreadEnd { const char* n = ""; ~ThreadEnd() { hook(n); } };
static thread_local ThreadEnd t_end;

static void make_runtime() {
  register_kernels(); cudaFree(0); cudaGetLastError();
  cudaMalloc(&g_dev, 4096); unsigned v = 4711; cudaMemcpy(g_dev, &v, 4, cudaMemcpyDefault); cudaMallocHost(&g_host, 4096); g_reg = aligned_alloc(4096, 4096); cudaHostRegister(g_reg, 4096, 0); cudaStreamCreate(&g_s); cudaEventCreate(&g_e); cudaEventRecord(g_e, g_s); launch(&k_empty, 1, 1, 0, g_s);
  cudaGraphCreate(&g_graph, 0); cudaGraphNode_t n; cudaGraphAddEmptyNode(&n, g_graph, nullptr, 0); cudaGraphInstantiate(&g_x, g_graph, 0); cudaDeviceSynchronize(); cudaGetLastError();
}
static void make_driver() {
  g_runtime = false; cuInit(0); cuCtxCreate(&g_ctx, 0, 0); cuMemAlloc(&g_cu, 4096); cuMemsetD32(g_cu, 4711, 4); cuStreamCreate(&g_cs, 0); cuEventCreate(&g_ce, 0); cuModuleLoadData(&g_m, kPtx); cuModuleGetFunction(&g_f, g_m, "k_empty"); cuLaunchKernel(g_f, 1, 1, 1, 1, 1, 1, 0, g_cs, nullptr, nullptr); cuCtxSynchronize();
}
// Runs a scene in a process of its own; records how it ended and whether in under 2 s.
static void scene(const char* name, std::function<void()> f) {
  CASE(name); uint64_t t = now_ns(); pid_t p = fork();
  if (p == 0) { alarm(20); f(); exit(7); }
  int st = 0; waitpid(p, &st, 0);
  NOTE("process", .str("end", WIFEXITED(st) ? "exit " + std::to_string(WEXITSTATUS(st)) : "signal " + std::to_string(WTERMSIG(st))).i("under 2 s", now_ns() - t < 2000000000ull));
}
#define BEFORE(h) atexit([] { hook(h); })

GROUP(exit_handlers) {
  scene("atexit, registered before CUDA was used", [] { BEFORE("atexit before"); make_runtime(); g_hook = "atexit before"; });
  scene("atexit, registered after CUDA was used", [] { make_runtime(); BEFORE("atexit after"); g_hook = "atexit after"; });
  scene("static destructor", [] { make_runtime(); g_hook = "static dtor"; });
  scene("destructor function", [] { make_runtime(); g_hook = "destructor fn"; });
  scene("main thread's thread_local", [] { make_runtime(); t_end.n = "thread_local"; g_hook = "thread_local"; });
  scene("at_quick_exit", [] { at_quick_exit([] { hook("at_quick_exit"); }); make_runtime(); g_hook = "at_quick_exit"; quick_exit(7); });
  scene("another thread's thread_local", [] { make_runtime(); std::thread([] { t_end.n = "thread end"; g_hook = "thread end"; cudaGetLastError(); }).join(); });
}
GROUP(driver_only) {
  scene("driver, atexit before", [] { BEFORE("atexit before"); make_driver(); g_hook = "atexit before"; });
  scene("driver, atexit after", [] { make_driver(); BEFORE("atexit after"); g_hook = "atexit after"; });
  scene("driver, static destructor", [] { make_driver(); g_hook = "static dtor"; });
  scene("driver, destructor function", [] { make_driver(); g_hook = "destructor fn"; });
  scene("driver calls at the end of a runtime process", [] { make_runtime(); cuCtxGetCurrent(&g_ctx); g_cu = (CUdeviceptr)g_dev; cuStreamCreate(&g_cs, 0); cuEventCreate(&g_ce, 0); cuModuleLoadData(&g_m, kPtx); cuModuleGetFunction(&g_f, g_m, "k_empty"); g_runtime = false; g_hook = "static dtor"; });
}
GROUP(first_use_at_exit) {
  scene("first CUDA call in an exit handler", [] { atexit([] { CASE("first, atexit"); int n = -1; void* p; RT(cudaGetDeviceCount(&n), .i("n", n)); RT(cudaMalloc(&p, 64)); RT(cudaFree(p)); DR(cuInit(0)); }); });
  scene("registered, never used, unregistered in an exit handler", [] { static void** h; static std::vector<char> fb = make_fatbin(kPtx, 70); static FatWrap w = {0x466243b1, 1, fb.data(), nullptr}; h = __cudaRegisterFatBinary(&w); __cudaRegisterFatBinaryEnd(h); atexit([] { __cudaUnregisterFatBinary(h); }); });
  scene("used, unregistered in an exit handler, asked in a destructor", [] { static void** h; static std::vector<char> fb = make_fatbin(kPtx, 70); static FatWrap w = {0x466243b1, 1, fb.data(), nullptr}; h = __cudaRegisterFatBinary(&w); __cudaRegisterFatBinaryEnd(h); make_runtime(); atexit([] { __cudaUnregisterFatBinary(h); }); g_hook = "static dtor"; });
  scene("after cudaDeviceReset, static destructor", [] { make_runtime(); cudaDeviceReset(); g_hook = "static dtor"; });
}
GROUP(pending_work) {
  static volatile unsigned* F; static void* q;
  auto hold = [] { cudaMallocHost(&q, 64); F = (volatile unsigned*)q; F[0] = F[1] = 0; launch(&k_wait, 1, 1, 0, g_s, (uint64_t)q, 1u); };
  scene("exit while a kernel runs", [&] { make_runtime(); hold(); });
  scene("_exit while a kernel runs", [&] { make_runtime(); hold(); _exit(7); });
  scene("exit, a destructor synchronises with the running kernel", [&] { make_runtime(); hold(); static struct S { ~S() { CASE("sync in dtor"); uint64_t t = now_ns(); RT(cudaStreamSynchronize(g_s)); NOTE("waited", .i("over 1 s", now_ns() - t > 1000000000ull)); } } s; (void)s; });
  scene("exit from another thread while main waits for a kernel", [&] { make_runtime(); hold(); std::thread([] { msleep(100); exit(7); }).detach(); cudaStreamSynchronize(g_s); });
  scene("exit with a host function that sleeps 300 ms", [&] { make_runtime(); cudaLaunchHostFunc(g_s, [](void*) { msleep(300); }, nullptr); });
  scene("exit with a waiting stream", [&] { make_runtime(); cudaMemset(g_dev, 0, 64); cuStreamWaitValue32(g_s, (CUdeviceptr)g_dev, 1, CU_STREAM_WAIT_VALUE_EQ); launch(&k_empty, 1, 1, 0, g_s); });
  scene("exit after a trap", [&] { make_runtime(); launch(&k_trap, 1, 1, 0, 0); cudaDeviceSynchronize(); });
  scene("exit after a trap, asked in a destructor", [&] { make_runtime(); launch(&k_trap, 1, 1, 0, 0); cudaDeviceSynchronize(); g_hook = "static dtor"; });
  scene("exit inside a host function", [&] { make_runtime(); cudaLaunchHostFunc(g_s, [](void*) { exit(7); }, nullptr); cudaStreamSynchronize(g_s); msleep(3000); _exit(8); });
  scene("another thread calls on while main exits", [&] { make_runtime(); for (int i = 0; i < 4; i++) std::thread([] { for (;;) { void* p; if (cudaMalloc(&p, 64) == cudaSuccess) cudaFree(p); launch(&k_empty, 1, 1, 0, 0); cudaDeviceSynchronize(); } }).detach(); msleep(200); });
}
GROUP(dlclose_and_exec) {
  scene("dlopen, use, dlclose, use again", [] {
    CASE("dlclose"); void* h = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL); NOTE("dlopen", .i("ok", h != nullptr)); make_runtime(); NOTE("dlclose", .i("rc", dlclose(h))); unsigned v = 0; RT(cudaMemcpy(&v, g_dev, 4, cudaMemcpyDefault), .u("v", v));
    void* c = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); NOTE("dlopen driver", .i("ok", c != nullptr)); NOTE("dlclose driver", .i("rc", dlclose(c))); v = 0; RT(cudaMemcpy(&v, g_dev, 4, cudaMemcpyDefault), .u("v", v)); });
  scene("exec after CUDA was used", [] { make_runtime(); execl("/bin/sh", "sh", "-c", "exit 7", nullptr); });
  scene("exec while a kernel runs", [] { make_runtime(); launch(&k_spin, 1, 1, 0, g_s, (uint64_t)3000000000ull); execl("/bin/sh", "sh", "-c", "exit 7", nullptr); });
  scene("child of fork exits, parent goes on", [] { make_runtime(); pid_t p = fork(); if (!p) exit(3); int st; waitpid(p, &st, 0); CASE("after child"); NOTE("child", .i("exit", WIFEXITED(st) ? WEXITSTATUS(st) : -1)); unsigned v = 0; RT(cudaMemcpy(&v, g_dev, 4, cudaMemcpyDefault), .u("v", v)); RT(launch(&k_empty, 1, 1, 0, 0)); RT(cudaDeviceSynchronize()); });
  scene("child of fork asks in its destructor", [] { make_runtime(); pid_t p = fork(); if (!p) { g_hook = "static dtor"; exit(3); } int st; waitpid(p, &st, 0); CASE("after child"); NOTE("child", .str("end", WIFEXITED(st) ? "exit " + std::to_string(WEXITSTATUS(st)) : "signal")); unsigned v = 0; RT(cudaMemcpy(&v, g_dev, 4, cudaMemcpyDefault), .u("v", v)); });
}
ORACLE_MAIN("exit")
