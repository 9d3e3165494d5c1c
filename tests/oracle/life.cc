// Area 16: who outlives whom. What a process sees of one that died with an event or a value owed; calls while a stream waits
// for a value; threads that end with work, with a capture and with an error of their own; signals in the middle of a wait;
// children made beside a running stream.
// Nothing here is timed finer than 3 s: a machine may be busy, and a first launch may have to compile. Every group is a process of its own (oracle.h), made before CUDA is used.
#include "kernels.h"
#include <spawn.h>
extern char** environ;

static void wr(int fd, const void* p, size_t n) { ssize_t r = write(fd, p, n); (void)r; }
static bool rdx(int fd, void* p, size_t n) { return read(fd, p, n) == (ssize_t)n; }
// The module is loaded now: loading it lazily at a first launch would wait for every stream that is held.
static void init() { register_kernels(); static unsigned* d; cudaMalloc((void**)&d, 64); launch(&k_store, 1, 1, 0, 0, (uint64_t)d, 0u); cudaDeviceSynchronize(); cudaGetLastError(); }
static std::string ended(int st) { return WIFEXITED(st) ? "exit " + std::to_string(WEXITSTATUS(st)) : "signal " + std::to_string(WTERMSIG(st)); }
static unsigned peek(const void* p) { unsigned v = 0; cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost); return v; }
// In a process of its own, so that one that never returns ends by its alarm; says how it ended.
static void scene(const char* name, std::function<void()> f, unsigned seconds = 12) {
  CASE(name); pid_t p = fork();
  if (p == 0) { alarm(seconds); f(); _exit(7); }
  int st = 0; waitpid(p, &st, 0); CASE(name); NOTE("process", .str("end", ended(st)));
}
// Asks for up to 3 s whether the stream or event ends.
template <class F> static const char* settles(F query) { for (int i = 0; i < 30; i++) { cudaError_t e = query(); if (e != cudaErrorNotReady) { cudaGetLastError(); return cudaGetErrorName(e); } msleep(100); } cudaGetLastError(); return "not within 3 s"; }

// --- an exporter that dies owing something ---------------------------------------------------------------------------
// 'v': its stream waits for a value that never comes, the event is recorded behind. 'k': behind a kernel of 60 s.
struct Owed { cudaIpcEventHandle_t done, pending, virgin; cudaIpcMemHandle_t mem; };
struct Peer { int fd; pid_t pid; };
static Peer debtor(char how) {
  int sv[2]; int r = socketpair(AF_UNIX, SOCK_STREAM, 0, sv); (void)r; pid_t c = fork();
  if (c) { close(sv[1]); return {sv[0], c}; }
  close(sv[0]); alarm(60); init();
  cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); unsigned* d; cudaMalloc((void**)&d, 4096); cudaMemset(d, 0, 4096);
  cudaEvent_t a, b, n; for (cudaEvent_t* e : {&a, &b, &n}) cudaEventCreateWithFlags(e, cudaEventInterprocess | cudaEventDisableTiming);
  launch(&k_spin, 1, 1, 0, s, (uint64_t)1); cudaStreamSynchronize(s);
  cudaEventRecord(a, s); cudaEventSynchronize(a);
  Owed o; cudaIpcGetEventHandle(&o.done, a); cudaIpcGetEventHandle(&o.pending, b); cudaIpcGetEventHandle(&o.virgin, n); cudaIpcGetMemHandle(&o.mem, d);
  if (how == 'v') cuStreamWaitValue32(s, (CUdeviceptr)d, 1, CU_STREAM_WAIT_VALUE_EQ); else launch(&k_spin, 1, 1, 0, s, (uint64_t)60000000000ull);
  cudaEventRecord(b, s); wr(sv[1], &o, sizeof o);
  char k; while (read(sv[1], &k, 1) == 1) { if (k == 'q') exit(0); }
  _exit(0);
}
static void bereaved(char how, bool killed) {
  Peer x = debtor(how); Owed o; if (!rdx(x.fd, &o, sizeof o)) return;
  init(); cudaEvent_t done, pending, virgin, own; cudaStream_t s, t, u; unsigned *far, *mine; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking); cudaEventCreateWithFlags(&own, cudaEventDisableTiming); cudaMalloc((void**)&mine, 64); cudaMemset(mine, 0, 64);
  RT(cudaIpcOpenEventHandle(&done, o.done)); RT(cudaIpcOpenEventHandle(&pending, o.pending)); RT(cudaIpcOpenEventHandle(&virgin, o.virgin)); RT(cudaIpcOpenMemHandle((void**)&far, o.mem, cudaIpcMemLazyEnablePeerAccess));
  RT(cudaEventQuery(done)); RT(cudaEventQuery(pending)); RT(cudaStreamWaitEvent(s, pending, 0)); RT(launch(&k_store, 1, 1, 0, s, (uint64_t)mine, 5u)); RT(cudaEventRecord(own, s)); DR(cuStreamWaitValue32(u, (CUdeviceptr)far + 64, 1, CU_STREAM_WAIT_VALUE_EQ)); RT(launch(&k_store, 1, 1, 0, u, (uint64_t)(mine + 1), 6u));
  if (killed) kill(x.pid, SIGKILL); else { char q = 'q'; wr(x.fd, &q, 1); }
  int st; waitpid(x.pid, &st, 0); NOTE("exporter", .str("end", ended(st)));
  NOTE("stream behind the owed record", .str("query", settles([&] { return cudaStreamQuery(s); }))); RT(cudaEventQuery(done)); NOTE("the owed record", .str("query", settles([&] { return cudaEventQuery(pending); }))); RT(cudaEventQuery(virgin));
  NOTE("event behind it", .str("query", settles([&] { return cudaEventQuery(own); }))); NOTE("memory", .u("behind the owed record", peek(mine)).u("behind the value", peek(mine + 1)));
  CASE("the survivor writes the value itself"); DR(cuStreamWriteValue32(t, (CUdeviceptr)far + 64, 1, 0)); NOTE("stream behind the value", .str("query", settles([&] { return cudaStreamQuery(u); }))); NOTE("memory", .u("behind the value", peek(mine + 1)));
  CASE("everything else works"); RT(launch(&k_store, 1, 1, 0, t, (uint64_t)(mine + 2), 7u)); RT(cudaStreamSynchronize(t)); NOTE("memory", .u("v", peek(mine + 2))); RT(cudaEventRecord(virgin, t)); RT(cudaEventSynchronize(virgin)); RT(cudaStreamWaitEvent(t, done, 0)); RT(cudaStreamSynchronize(t)); cudaEvent_t again; RT(cudaIpcOpenEventHandle(&again, o.done));
  CASE("the survivor records the owed event anew"); RT(cudaEventRecord(pending, t)); RT(cudaStreamSynchronize(t)); NOTE("the record", .str("query", settles([&] { return cudaEventQuery(pending); }))); NOTE("stream behind the owed record", .str("query", settles([&] { return cudaStreamQuery(s); }))); NOTE("memory", .u("v", peek(mine)));
  CASE("taking down"); RT(cudaEventDestroy(done)); RT(cudaEventDestroy(pending)); RT(cudaStreamDestroy(s)); RT(cudaStreamDestroy(t)); RT(cudaIpcCloseMemHandle(far));
}
GROUP_T(debtor_killed_owing_a_value, 60) { scene("killed while its stream waits for a value", [] { bereaved('v', true); }, 30); }
GROUP_T(debtor_leaves_owing_a_value, 60) { scene("exits while its stream waits for a value", [] { bereaved('v', false); }, 30); }
GROUP_T(debtor_killed_in_a_kernel, 60) { scene("killed while its kernel runs", [] { bereaved('k', true); }, 30); }
GROUP(synchronise_with_the_dead) {
  scene("cudaEventSynchronize with the owed record of a killed process", [] { Peer x = debtor('v'); Owed o; rdx(x.fd, &o, sizeof o); init(); cudaEvent_t e; RT(cudaIpcOpenEventHandle(&e, o.pending)); kill(x.pid, SIGKILL); waitpid(x.pid, 0, 0); RT(cudaEventSynchronize(e)); });
  scene("cudaDeviceSynchronize with a stream behind it", [] { Peer x = debtor('v'); Owed o; rdx(x.fd, &o, sizeof o); init(); cudaEvent_t e; cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); RT(cudaIpcOpenEventHandle(&e, o.pending)); RT(cudaStreamWaitEvent(s, e, 0)); kill(x.pid, SIGKILL); waitpid(x.pid, 0, 0); RT(cudaDeviceSynchronize()); });
}

// --- calls while a stream waits for a value --------------------------------------------------------------------------
GROUP_T(held_by_a_value, 90) {
  init(); cudaStream_t s, w; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&w, cudaStreamNonBlocking); unsigned *pin, *d, *d2; cudaMallocHost((void**)&pin, 4096); cudaMalloc((void**)&d, 4096); cudaMalloc((void**)&d2, 4096); static CUmodule m; static cudaGraph_t g; static cudaGraphExec_t x; cudaGraphCreate(&g, 0); cudaGraphNode_t n; cudaGraphAddEmptyNode(&n, g, nullptr, 0); launch(&k_store, 1, 1, 0, s, (uint64_t)d, 0u); cudaDeviceSynchronize();
  CASE("does the call return before a stream that waits for a value is released?"); unsigned turn = 0;
  auto T = [&](const char* nm, std::function<int()> f) { turn++; pin[0] = 0; cuStreamWaitValue32(s, (CUdeviceptr)pin, turn, CU_STREAM_WAIT_VALUE_EQ); launch(&k_store, 1, 1, 0, s, (uint64_t)d, turn); std::atomic<bool> done{false}; int e = 0; std::thread t([&] { cudaSetDevice(0); e = f(); done = true; }); for (int i = 0; i < 150 && !done; i++) msleep(20); bool early = done; pin[0] = turn; __sync_synchronize(); t.join(); cudaError_t end = cudaStreamSynchronize(s); NOTE(nm, .str("call", early ? "returned while the stream was held" : "blocked until release").i("r", e).i("stream", end).i("data", peek(d) == turn)); cudaGetLastError(); };
  T("cuModuleLoadData", [&] { return (int)cuModuleLoadData(&m, kPtx); }); T("cuModuleUnload", [&] { return (int)cuModuleUnload(m); }); T("cudaMalloc", [&] { void* q; return (int)cudaMalloc(&q, 1 << 20); }); T("cudaFree of other memory", [&] { return (int)cudaFree(d2); }); T("cudaMallocHost", [&] { void* q; return (int)cudaMallocHost(&q, 4096); }); T("cudaHostRegister", [&] { return (int)cudaHostRegister(aligned_alloc(4096, 4096), 4096, 0); }); T("cudaMemset on NULL", [&] { return (int)cudaMemset(d + 16, 0, 4); }); T("cudaMemcpy H2D on NULL", [&] { unsigned v = 1; return (int)cudaMemcpy(d + 16, &v, 4, cudaMemcpyHostToDevice); }); T("cudaMemcpyToSymbol", [&] { unsigned v = 11; return (int)cudaMemcpyToSymbol(gvar, &v, 4); });
  T("cudaStreamCreate", [&] { cudaStream_t q; return (int)cudaStreamCreate(&q); }); T("cudaStreamDestroy of another stream", [&] { return (int)cudaStreamDestroy(w); }); T("first launch of a kernel", [&] { cudaStream_t q; cudaStreamCreateWithFlags(&q, cudaStreamNonBlocking); return (int)launch(&k_inc, 1, 1, 0, q, (uint64_t)(d + 32)); }); T("cudaGraphInstantiate", [&] { return (int)cudaGraphInstantiate(&x, g, 0); }); T("cudaGraphLaunch", [&] { cudaStream_t q; cudaStreamCreateWithFlags(&q, cudaStreamNonBlocking); return (int)cudaGraphLaunch(x, q); }); T("cuCtxCreate", [&] { CUcontext c; return (int)cuCtxCreate(&c, 0, 0); }); T("cudaDeviceSetLimit stack size", [&] { return (int)cudaDeviceSetLimit(cudaLimitStackSize, 4096); }); T("cudaDeviceGetStreamPriorityRange", [&] { int a, b; return (int)cudaDeviceGetStreamPriorityRange(&a, &b); });
}

// --- threads that end --------------------------------------------------------------------------------------------------
GROUP(thread_ends) {
  scene("with work in its own default stream", [] { init(); unsigned* pin; cudaMallocHost((void**)&pin, 64); memset(pin, 0, 64); std::thread([&] { cudaSetDevice(0); DR(cuStreamWaitValue32((CUstream)cudaStreamPerThread, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_EQ)); RT(launch(&k_store, 1, 1, 0, cudaStreamPerThread, (uint64_t)(pin + 4), 5u)); }).join(); NOTE("memory", .u("held", pin[4])); pin[0] = 1; __sync_synchronize(); RT(cudaDeviceSynchronize()); NOTE("memory", .u("released", pin[4])); });
  init(); unsigned* d; cudaMalloc((void**)&d, 64); cudaMemset(d, 0, 64);
  CASE("with an error of its own"); std::thread([&] { void* p; cudaMalloc(&p, (size_t)1 << 60); RTK(cudaPeekAtLastError()); }).join(); RT(cudaGetLastError());
  CASE("with a current context"); CUcontext c; cuCtxCreate(&c, 0, 0); cuCtxPopCurrent(&c); std::thread([&] { DR(cuCtxPushCurrent(c)); CUdeviceptr q; DR(cuMemAlloc(&q, 64)); }).join(); DR(cuCtxPushCurrent(c)); DR(cuCtxSynchronize()); DR(cuCtxDestroy(c)); cudaSetDevice(0);
  for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    CASE("with a capture begun, mode " + std::to_string(mode));
    cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); std::thread([&] { RT(cudaStreamBeginCapture(s, mode)); RT(launch(&k_store, 1, 1, 0, s, (uint64_t)(d + 1), 9u)); }).join(); cudaStreamCaptureStatus st; RT(cudaStreamIsCapturing(s, &st), .i("st", st)); void* q; RT(cudaMalloc(&q, 64)); cudaGraph_t g = nullptr; RT(cudaStreamEndCapture(s, &g), .nz("g", g)); RT(cudaStreamIsCapturing(s, &st), .i("st", st)); RT(launch(&k_store, 1, 1, 0, s, (uint64_t)(d + 1), 9u)); RT(cudaStreamSynchronize(s)); RT(cudaStreamDestroy(s)); }
}

// --- signals -------------------------------------------------------------------------------------------------------------
static volatile unsigned* s_pin; static std::atomic<int> s_seen{0};
static void release_by_signal(int) { s_seen++; s_pin[0] = 1; }
GROUP_T(signals, 90) {
  auto hold = [](cudaStream_t* s, unsigned** d) { init(); cudaMallocHost((void**)&s_pin, 64); s_pin[0] = 0; cudaMalloc((void**)d, 64); cudaStreamCreateWithFlags(s, cudaStreamNonBlocking); cuStreamWaitValue32(*s, (CUdeviceptr)s_pin, 1, CU_STREAM_WAIT_VALUE_EQ); launch(&k_store, 1, 1, 0, *s, (uint64_t)*d, 5u); };
  auto poke = [](int sig) { pthread_t self = pthread_self(); std::thread([=] { msleep(300); pthread_kill(self, sig); }).detach(); };
  for (int flags : {0, (int)SA_RESTART}) { 
    scene(flags ? "a handler (SA_RESTART) in the middle of a synchronisation" : "a handler in the middle of a synchronisation", [=] { cudaStream_t s; unsigned* d; hold(&s, &d); struct sigaction a = {}; a.sa_handler = release_by_signal; a.sa_flags = flags; sigaction(SIGUSR1, &a, 0); poke(SIGUSR1); RT(cudaStreamSynchronize(s)); NOTE("handler", .i("calls", s_seen).u("data", peek(d))); }); }
  scene("the same with blocking synchronisation", [=] { cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync); cudaStream_t s; unsigned* d; hold(&s, &d); struct sigaction a = {}; a.sa_handler = release_by_signal; sigaction(SIGUSR1, &a, 0); poke(SIGUSR1); RT(cudaStreamSynchronize(s)); NOTE("handler", .i("calls", s_seen).u("data", peek(d))); });
  scene("SIGTERM in the middle of a synchronisation", [=] { cudaStream_t s; unsigned* d; hold(&s, &d); poke(SIGTERM); cudaStreamSynchronize(s); });
  scene("SIGTERM to the process in the middle of a synchronisation", [=] { cudaStream_t s; unsigned* d; hold(&s, &d); std::thread([] { msleep(300); kill(getpid(), SIGTERM); }).detach(); cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventBlockingSync); cudaEventRecord(e, s); cudaEventSynchronize(e); });
  scene("a handler that exits in the middle of a synchronisation", [=] { cudaStream_t s; unsigned* d; hold(&s, &d); signal(SIGTERM, [](int) { exit(9); }); poke(SIGTERM); cudaStreamSynchronize(s); });
  scene("which signals do CUDA's threads block, and are handlers of the program replaced?", [=] { for (int i : {SIGSEGV, SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) signal(i, SIG_DFL); /* a shell may have told us to ignore some */ init(); std::string changed; for (int i = 1; i < 32; i++) { struct sigaction a; if (sigaction(i, 0, &a) == 0 && a.sa_handler != SIG_DFL && i != SIGALRM && i != SIGBUS) changed += std::to_string(i) + " "; } NOTE("handlers other than the default", .str("signals", changed)); });
}

// --- children ------------------------------------------------------------------------------------------------------------
GROUP(children) {
  init(); cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); unsigned *pin, *d; cudaMallocHost((void**)&pin, 4096); cudaMalloc((void**)&d, 64); launch(&k_store, 1, 1, 0, s, (uint64_t)d, 0u); cudaStreamSynchronize(s);
  auto around = [&](const char* name, std::function<std::string()> child) { CASE(name); pin[0] = 0; cudaMemset(d, 0, 4); cudaDeviceSynchronize(); cuStreamWaitValue32(s, (CUdeviceptr)pin, 1, CU_STREAM_WAIT_VALUE_EQ); launch(&k_store, 1, 1, 0, s, (uint64_t)d, 5u); std::string end = child(); CASE(name); NOTE("child", .str("end", end)); pin[0] = 1; __sync_synchronize(); RT(cudaStreamSynchronize(s)); NOTE("memory", .u("v", peek(d)).u("pinned", pin[0])); };
  around("posix_spawn while a stream waits", [&] { pid_t p; char* av[] = {(char*)"sh", (char*)"-c", (char*)"exit 5", 0}; int r = posix_spawn(&p, "/bin/sh", 0, 0, av, environ), st = 0; if (r) return std::string("error"); waitpid(p, &st, 0); return ended(st); });
  around("vfork and exec while a stream waits", [&] { int st = 0; pid_t p = vfork(); if (p == 0) { execl("/bin/sh", "sh", "-c", "exit 5", nullptr); _exit(1); } waitpid(p, &st, 0); return ended(st); });
  around("system() while a stream waits", [&] { int st = system("exit 5"); return ended(st); });
  around("fork, what the child sees of pinned memory", [&] { int st = 0; pid_t p = fork(); if (p == 0) { alarm(10); pin[1] = 77; _exit(pin[0] == 0 ? 5 : 6); } waitpid(p, &st, 0); return ended(st) + (pin[1] == 77 ? ", its store is seen" : ", its store is not seen"); });
  around("fork, a child of the child asks", [&] { int st = 0; pid_t p = fork(); if (p == 0) { alarm(10); pid_t q = fork(); if (q == 0) { alarm(10); RT(cudaFree(0)); DR(cuInit(0)); int n; RT(cudaGetDeviceCount(&n)); _exit(0); } int t = 0; waitpid(q, &t, 0); _exit(t ? 6 : 5); } waitpid(p, &st, 0); return ended(st); });
  around("fork, late calls of the child", [&] { int st = 0; pid_t p = fork(); if (p == 0) { alarm(10); RT(cudaStreamQuery(s)); RT(cudaStreamSynchronize(s)); RT(cudaStreamDestroy(s)); RT(cudaFreeHost(pin)); RT(cudaDeviceReset()); RTK(cudaPeekAtLastError()); void* q; RT(cudaMallocHost(&q, 64)); CUcontext c; DR(cuCtxGetCurrent(&c)); DR(cuStreamQuery((CUstream)s)); const char* t; DR(cuGetErrorName(CUDA_ERROR_NOT_READY, &t)); DR(cuGetErrorString(CUDA_ERROR_NOT_READY, &t)); int v; DR(cuDriverGetVersion(&v)); void* f; CUdriverProcAddressQueryResult qr; DR(cuGetProcAddress("cuMemAlloc", &f, 12000, 0, &qr), .i("found", f != nullptr)); _exit(5); } waitpid(p, &st, 0); return ended(st); });
  around("fork while another thread calls", [&] { std::atomic<bool> stop{false}; std::thread t([&] { while (!stop) { void* q; if (cudaMalloc(&q, 64) == cudaSuccess) cudaFree(q); cudaPointerAttributes a; cudaPointerGetAttributes(&a, d); } }); std::string all; for (int i = 0; i < 20; i++) { int st = 0; pid_t p = fork(); if (p == 0) { alarm(10); void* q; _exit(cudaMalloc(&q, 64) == cudaErrorInitializationError ? 5 : 6); } waitpid(p, &st, 0); if (ended(st) != "exit 5") all = ended(st); } stop = true; pin[0] = 1; t.join(); return all.empty() ? std::string("exit 5") : all; });
}
ORACLE_MAIN("life")
