// Area 18: random sequences of calls about capture, events and graphs, from seeds: what no list of cases thinks of. Each
// seed is a case; what a step does follows from the seed alone, so that two libraries are asked the same to the end.
// SEQUENCES=FIRST-LAST runs other seeds than those of the record.
#include "kernels.h"
#include <condition_variable>
#include <mutex>

namespace {
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull) { for (int i = 0; i < 4; i++) next(); }
  uint64_t next() { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
  unsigned below(unsigned n) { return (unsigned)((next() >> 33) % n); }
  bool one_in(unsigned n) { return below(n) == 0; }
};

// A second thread that does what it is given, one thing at a time.
struct Other {
  std::mutex m; std::condition_variable c; std::function<void()> work; bool full = false;
  Other() { std::thread([this] { for (;;) { std::unique_lock<std::mutex> l(m); c.wait(l, [&] { return full; }); work(); full = false; c.notify_all(); } }).detach(); }
  void run(std::function<void()> f) { std::unique_lock<std::mutex> l(m); work = std::move(f); full = true; c.notify_all(); c.wait(l, [&] { return !full; }); }
};

Random* R;
Other* other;
unsigned *D, *H;
std::atomic<int> hosted;
void host(void*) { hosted++; }
int cell;

template <class F> cudaError_t step(const std::string& text, F call, const std::function<void(J&)>& out = {}) {
  int sig;
  cudaError_t e = guarded<cudaError_t>(call, &sig);
  if (sig) { emit(text.c_str(), SEGV(sig), -sig, nullptr, J()); return e; }
  cudaError_t last = cudaGetLastError();
  J j;
  if (out) out(j);
  emit(text.c_str(), rtname(e), (int)e, rtname(last).c_str(), j);
  return e;
}
std::string n(const char* prefix, int i) { return prefix + std::to_string(i); }

// What a graph is: how many nodes, of which types, and the edges between them, nodes by their place.
std::string shape(cudaGraph_t g) {
  size_t count = 0, edges = 0;
  if (cudaGraphGetNodes(g, nullptr, &count) || cudaGraphGetEdges(g, nullptr, nullptr, &edges)) { cudaGetLastError(); return "?"; }
  std::vector<cudaGraphNode_t> nodes(count), from(edges), to(edges);
  if (count) cudaGraphGetNodes(g, nodes.data(), &count);
  if (edges) cudaGraphGetEdges(g, from.data(), to.data(), &edges);
  std::string s;
  for (auto node : nodes) { cudaGraphNodeType t = (cudaGraphNodeType)99; cudaGraphNodeGetType(node, &t); s += (s.empty() ? "" : " ") + std::to_string(t); }
  auto place = [&](cudaGraphNode_t node) { return std::find(nodes.begin(), nodes.end(), node) - nodes.begin(); };
  std::vector<std::pair<int, int>> pairs;
  for (size_t i = 0; i < edges; i++) pairs.push_back({(int)place(from[i]), (int)place(to[i])});
  std::sort(pairs.begin(), pairs.end());
  for (auto& p : pairs) s += " " + std::to_string(p.first) + ">" + std::to_string(p.second);
  return s;
}

struct Graphs {
  cudaGraph_t g[3] = {};
  cudaGraphExec_t x[2] = {};
  ~Graphs() { for (auto e : x) if (e) cudaGraphExecDestroy(e); for (auto q : g) if (q) cudaGraphDestroy(q); cudaGetLastError(); }
};

void values(const char* what) {
  cudaError_t e = cudaDeviceSynchronize();
  std::vector<unsigned> v(64);
  cudaError_t f = cudaMemcpy(v.data(), D, 256, cudaMemcpyDefault);
  cudaGetLastError();
  std::string s;
  for (auto u : v) s += (s.empty() ? "" : " ") + std::to_string(u);
  note(what, J().str("sync", rtname(e)).str("copy", rtname(f)).str("cells", s).i("hosted", hosted.load()));
}
void clear() { hosted = 0; cudaDeviceSynchronize(); cudaMemset(D, 0, 4096); cudaMemset(D + 1024, 7, 4096); for (int i = 0; i < 1024; i++) H[i] = 0x07070707; cudaDeviceSynchronize(); cudaGetLastError(); cell = 0; }

void start() {
  register_kernels(); cudaFree(0); cudaMalloc((void**)&D, 1 << 16); cudaMallocHost((void**)&H, 1 << 16); other = new Other;
  other->run([] { cudaFree(0); launch(&k_empty, 1, 1, 0, 0); cudaDeviceSynchronize(); });
  cudaDeviceSynchronize(); cudaGetLastError();
}
// Each seed in a process of its own: nothing that one leaves behind reaches another.
template <class F> void seeds(F run, int first, int last) {
  if (const char* text = getenv("SEQUENCES")) sscanf(text, "%d-%d", &first, &last);
  for (int seed = first; seed <= last; seed++) {
    static std::string name; name = "seed " + std::to_string(seed); CASE(name.c_str());
    pid_t child = fork();
    if (!child) { alarm(60); start(); Random random(seed); R = &random; clear(); run(); _exit(0); }
    int status = 0; waitpid(child, &status, 0);
    if (status) NOTE("ends with", .i("signal", WTERMSIG(status)));
  }
}

// Streams, events and capture: two threads take turns.
void capture() {
  static const char* stream_names[] = {"0", "per-thread", "b", "n1", "n2", "n3"};
  cudaStream_t s[6] = {0, cudaStreamPerThread};
  cudaStreamCreate(&s[2]);
  for (int i = 3; i < 6; i++) cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
  cudaEvent_t e[4];
  for (int i = 0; i < 4; i++) cudaEventCreateWithFlags(&e[i], i % 2 ? cudaEventDisableTiming : 0);
  Graphs graphs;
  std::vector<unsigned long long> ids;
  void* blocks[3] = {};
  int captures = 0;
  for (int i = 0; i < 60; i++) {
    bool there = R->one_in(6);
    // The legacy and the per-thread stream now and then, the others mostly.
    int a = R->one_in(6) ? R->below(2) : 2 + R->below(4), b = 2 + R->below(4), ev = R->below(4), what = R->below(112), gi = R->below(3), xi = R->below(2), k = R->below(3), c = cell;
    std::string sa = stream_names[a], t = there ? " of the other thread" : "";
    auto does = [&](const std::string& text, auto call, const std::function<void(J&)>& out = {}) {
      auto body = [&] { step(text, call, out); };
      if (there) other->run(body); else body();
    };
    auto begins = [&] { static const char* modes[] = {"global", "thread-local", "relaxed"}; does("cudaStreamBeginCapture(" + sa + ", " + modes[k] + ")" + t, [&] { return cudaStreamBeginCapture(s[a], (cudaStreamCaptureMode)k); }); captures++; };
    if (i == 0 || what < 6) begins();
    else if (what < 14) { cudaGraph_t g = 0; does("cudaStreamEndCapture(" + sa + ", &" + n("g", gi) + ")" + t, [&] { return cudaStreamEndCapture(s[a], &g); }, [&](J& j) { j.str("graph", g ? shape(g) : "NULL"); }); if (g) { if (graphs.g[gi]) cudaGraphDestroy(graphs.g[gi]); graphs.g[gi] = g; } }
    else if (what < 26) { unsigned f = R->one_in(5); does("cudaEventRecordWithFlags(" + n("e", ev) + ", " + sa + ", " + n("", f) + ")" + t, [&] { return cudaEventRecordWithFlags(e[ev], s[a], f); }); }
    else if (what < 40) { unsigned f = R->one_in(8); does("cudaStreamWaitEvent(" + sa + ", " + n("e", ev) + ", " + n("", f) + ")" + t, [&] { return cudaStreamWaitEvent(s[a], e[ev], f); }); }
    else if (what < 54) { cell = (cell + 1) % 64; does("launch(" + sa + ")" + t, [&] { return launch(&k_inc, 1, 1, 0, s[a], (uint64_t)(D + c)); }); }
    else if (what < 58) { cell = (cell + 1) % 64; does("cudaMemcpyAsync(" + sa + ", " + (k ? k > 1 ? "pinned to device" : "device to device" : "pageable to device") + ")" + t, [&] { static unsigned page[1] = {5}; return cudaMemcpyAsync(D + c, k ? k > 1 ? H : D + 1024 : page, 4, cudaMemcpyDefault, s[a]); }); }
    else if (what < 61) { cell = (cell + 1) % 64; does("cudaMemsetAsync(" + sa + ")" + t, [&] { return cudaMemsetAsync(D + c, k, 4, s[a]); }); }
    else if (what < 63) does("cudaLaunchHostFunc(" + sa + ")" + t, [&] { return cudaLaunchHostFunc(s[a], host, nullptr); });
    else if (what < 65) { void* p = 0; does("cudaMallocAsync(" + n("p", k) + ", " + sa + ")" + t, [&] { return cudaMallocAsync(&p, 4096, s[a]); }, [&](J& j) { j.nz("p", p); }); if (p && !blocks[k]) blocks[k] = p; }
    else if (what < 67) { void* p = blocks[k]; if (!p) continue; blocks[k] = 0; does("cudaFreeAsync(" + n("p", k) + ", " + sa + ")" + t, [&] { return cudaFreeAsync(p, s[a]); }); }
    else if (what < 69) does("cudaStreamSynchronize(" + sa + ")" + t, [&] { return cudaStreamSynchronize(s[a]); });
    else if (what < 71) does("cudaStreamQuery(" + sa + "), until it is ready" + t, [&] { cudaError_t r; while ((r = cudaStreamQuery(s[a])) == cudaErrorNotReady) cudaGetLastError(); return r; });
    else if (what < 72) does("cudaEventSynchronize(" + n("e", ev) + ")" + t, [&] { return cudaEventSynchronize(e[ev]); });
    else if (what < 74) does("cudaEventQuery(" + n("e", ev) + "), until it is ready" + t, [&] { cudaError_t r; while ((r = cudaEventQuery(e[ev])) == cudaErrorNotReady) cudaGetLastError(); return r; });
    else if (what < 75) does("cudaDeviceSynchronize()" + t, [&] { return cudaDeviceSynchronize(); });
    else if (what < 81) {
      cudaStreamCaptureStatus st = (cudaStreamCaptureStatus)9; unsigned long long id = 0; cudaGraph_t g = 0; const cudaGraphNode_t* deps = 0; size_t count = 99;
      does("cudaStreamGetCaptureInfo(" + sa + ")" + t, [&] { return cudaStreamGetCaptureInfo_v2(s[a], &st, &id, &g, &deps, &count); }, [&](J& j) {
        if (st == cudaStreamCaptureStatusActive) { auto at = std::find(ids.begin(), ids.end(), id); if (at == ids.end()) at = ids.insert(at, id); j.i("id", at - ids.begin()).u("deps", count).str("graph", shape(g)); }
        j.i("status", st); });
    }
    else if (what < 83) { cudaStreamCaptureStatus st = (cudaStreamCaptureStatus)9; does("cudaStreamIsCapturing(" + sa + ")" + t, [&] { return cudaStreamIsCapturing(s[a], &st); }, [&](J& j) { j.i("status", st); }); }
    else if (what < 85) {
      // The dependencies of one stream given to another, set or added.
      cudaStreamCaptureStatus st; unsigned long long id; cudaGraph_t g; const cudaGraphNode_t* deps = 0; size_t count = 0;
      if (cudaStreamGetCaptureInfo_v2(s[b], &st, &id, &g, &deps, &count) || st != cudaStreamCaptureStatusActive) count = 0;
      cudaGetLastError(); std::vector<cudaGraphNode_t> d; if (count) d.assign(deps, deps + count);
      does("cudaStreamUpdateCaptureDependencies(" + sa + ", of " + stream_names[b] + ", " + n("", k) + ")" + t, [&] { return cudaStreamUpdateCaptureDependencies(s[a], d.data(), d.size(), k); });
    }
    else if (what < 86) { if (!graphs.g[gi]) continue; does("cudaStreamBeginCaptureToGraph(" + sa + ", " + n("g", gi) + ")" + t, [&] { return cudaStreamBeginCaptureToGraph(s[a], graphs.g[gi], nullptr, nullptr, 0, (cudaStreamCaptureMode)k); }); }
    else if (what < 90) { cudaGraphExec_t x = 0; does("cudaGraphInstantiate(&" + n("x", xi) + ", " + n("g", gi) + ")" + t, [&] { return cudaGraphInstantiate(&x, graphs.g[gi], 0); }, [&](J& j) { j.nz("x", x); }); if (x) { if (graphs.x[xi]) cudaGraphExecDestroy(graphs.x[xi]); graphs.x[xi] = x; } }
    else if (what < 94) does("cudaGraphLaunch(" + n("x", xi) + ", " + sa + ")" + t, [&] { return cudaGraphLaunch(graphs.x[xi], s[a]); });
    else if (what < 95) { void* p = 0; does("cudaMalloc(4096)" + t, [&] { return cudaMalloc(&p, 4096); }, [&](J& j) { j.nz("p", p); }); if (p) step("cudaFree(it)", [&] { return cudaFree(p); }); }
    else if (what < 96) { cudaStreamCaptureMode m = (cudaStreamCaptureMode)k; does("cudaThreadExchangeStreamCaptureMode(" + n("", k) + ")" + t, [&] { return cudaThreadExchangeStreamCaptureMode(&m); }, [&](J& j) { j.i("before", m); }); }
    else if (what < 97) { cudaEventDestroy(e[ev]); cudaGetLastError(); does("cudaEventCreateWithFlags(&" + n("e", ev) + ", " + n("", 2 * k) + "), anew" + t, [&] { return cudaEventCreateWithFlags(&e[ev], 2 * k % 4); }); }
    else if (what < 98) { if (a < 2) continue; step("cudaStreamDestroy(" + sa + ")", [&] { return cudaStreamDestroy(s[a]); }); step("cudaStreamCreateWithFlags(&" + sa + ")", [&] { return cudaStreamCreateWithFlags(&s[a], a == 2 ? 0 : 1); }); }
    else if (what < 99) does("cudaMemcpy(device to pageable)" + t, [&] { unsigned v; return cudaMemcpy(&v, D + 2048, 4, cudaMemcpyDefault); });
    else if (what < 100) { void* p = 0; does("cudaMallocHost(4096)" + t, [&] { return cudaMallocHost(&p, 4096); }, [&](J& j) { j.nz("p", p); }); if (p) step("cudaFreeHost(it)", [&] { return cudaFreeHost(p); }); }
    else if (what < 101) does("cudaMemset(device)" + t, [&] { return cudaMemset(D + 2048, 0, 4); });
    else if (what < 102) does("cudaMemcpy(device to device)" + t, [&] { return cudaMemcpy(D + 2048, D + 2052, 4, cudaMemcpyDefault); });
    else if (what < 103) does("cudaGraphUpload(" + n("x", xi) + ", " + sa + ")" + t, [&] { return cudaGraphUpload(graphs.x[xi], s[a]); });
    else if (what < 104) { cudaGraphExecUpdateResultInfo info = {}; does("cudaGraphExecUpdate(" + n("x", xi) + ", " + n("g", gi) + ")" + t, [&] { return cudaGraphExecUpdate(graphs.x[xi], graphs.g[gi], &info); }, [&](J& j) { j.i("result", info.result); }); }
    else if (what < 105) { cudaStream_t q = 0; does("cudaStreamCreate" + std::string("(&q)") + t, [&] { return cudaStreamCreateWithFlags(&q, k % 2); }); if (q) step("cudaStreamDestroy(q)", [&] { return cudaStreamDestroy(q); }); }
    else if (what < 106) { size_t f, all; does("cudaMemGetInfo()" + t, [&] { return cudaMemGetInfo(&f, &all); }); }
    else if (what < 107) { cudaPointerAttributes at; does("cudaPointerGetAttributes()" + t, [&] { return cudaPointerGetAttributes(&at, D); }); }
    else if (what < 108) { int p; does("cudaStreamGetPriority(" + sa + ")" + t, [&] { return cudaStreamGetPriority(s[a], &p); }); unsigned f; does("cudaStreamGetFlags(" + sa + ")" + t, [&] { return cudaStreamGetFlags(s[a], &f); }); }
    else if (what < 109) { cudaStreamAttrValue v = {}; does("cudaStreamGetAttribute(" + sa + ")" + t, [&] { return cudaStreamGetAttribute(s[a], cudaStreamAttributeSynchronizationPolicy, &v); }); does("cudaStreamSetAttribute(" + sa + ")" + t, [&] { v.syncPolicy = cudaSyncPolicyAuto; return cudaStreamSetAttribute(s[a], cudaStreamAttributeSynchronizationPolicy, &v); }); }
    else if (what < 110) does("cudaStreamAddCallback(" + sa + ")" + t, [&] { return cudaStreamAddCallback(s[a], [](cudaStream_t, cudaError_t, void*) { hosted++; }, nullptr, 0); });
    else if (what < 111) does("cudaStreamCopyAttributes(" + sa + ", " + stream_names[b] + ")" + t, [&] { return cudaStreamCopyAttributes(s[a], s[b]); });
    else { float ms = -1; int f = R->below(4); does("cudaEventElapsedTime(" + n("e", ev) + ", " + n("e", f) + "), until it is ready" + t, [&] { cudaError_t r; while ((r = cudaEventElapsedTime(&ms, e[ev], e[f])) == cudaErrorNotReady) cudaGetLastError(); return r; }); }
  }
  for (int i = 0; i < 6; i++) { cudaGraph_t g = 0; step(std::string("cudaStreamEndCapture(") + stream_names[i] + "), at the end", [&] { return cudaStreamEndCapture(s[i], &g); }, [&](J& j) { j.str("graph", g ? shape(g) : "NULL"); }); if (g) cudaGraphDestroy(g); }
  other->run([&] { for (int i = 0; i < 6; i++) { cudaGraph_t g = 0; step(std::string("cudaStreamEndCapture(") + stream_names[i] + "), at the end, of the other thread", [&] { return cudaStreamEndCapture(s[i], &g); }, [&](J& j) { j.str("graph", g ? shape(g) : "NULL"); }); if (g) cudaGraphDestroy(g); } cudaStreamCaptureMode m = cudaStreamCaptureModeGlobal; cudaThreadExchangeStreamCaptureMode(&m); });
  cudaStreamCaptureMode m = cudaStreamCaptureModeGlobal; cudaThreadExchangeStreamCaptureMode(&m);
  values("values");
  for (int i = 2; i < 6; i++) cudaStreamDestroy(s[i]);
  for (auto q : e) cudaEventDestroy(q);
  cudaDeviceSynchronize(); cudaGetLastError();
}

// Graphs by hand: construction, structure, instantiation, update, launch. Kernels add to the first 32 cells, in whatever order
// branches run; what is set or copied to a cell of the others is always the same.
void graph() {
  Graphs graphs; auto& g = graphs.g; auto& x = graphs.x;
  cudaStream_t s; cudaStreamCreateWithFlags(&s, 1);
  cudaEvent_t e[2]; for (auto& q : e) cudaEventCreateWithFlags(&q, cudaEventDisableTiming);
  std::vector<cudaGraphNode_t> nodes[3];
  for (auto& q : g) cudaGraphCreate(&q, 0);
  uint64_t argument; void* arguments[1] = {&argument};
  auto kernel = [&](unsigned c, bool bad) { cudaKernelNodeParams p = {}; argument = (uint64_t)(D + c); p.func = (void*)&k_inc; p.gridDim = 1; p.blockDim = dim3(bad ? 4096 : 1 + R->below(3)); p.kernelParams = arguments; return p; };
  auto refresh = [&](int i) { size_t count = 0; cudaGraphGetNodes(g[i], nullptr, &count); nodes[i].resize(count); if (count) cudaGraphGetNodes(g[i], nodes[i].data(), &count); cudaGetLastError(); };
  auto place = [&](cudaGraphNode_t q) { for (int i = 0; i < 3; i++) { auto at = std::find(nodes[i].begin(), nodes[i].end(), q); if (at != nodes[i].end()) return n("g", i) + "." + std::to_string(at - nodes[i].begin()); } return std::string(q ? "another" : "NULL"); };
  auto launch_it = [&](int xi) { step("cudaGraphLaunch(" + n("x", xi) + ", s)", [&] { return cudaGraphLaunch(x[xi], s); }); cudaDeviceSynchronize(); cudaGetLastError(); };
  for (int i = 0; i < 60; i++) {
    int gi = R->one_in(4) ? R->below(3) : 0, gj = R->below(3), xi = R->below(2), what = R->below(100), ev = R->below(2), c = R->below(32), set = 32 + R->below(16), copied = 48 + R->below(16);
    refresh(0); refresh(1); refresh(2);
    auto& of = nodes[gi];
    auto any = [&](int graph) -> cudaGraphNode_t { auto& v = nodes[graph]; return v.empty() ? nullptr : v[R->below(v.size())]; };
    cudaGraphNode_t one = any(gi), two = any(R->one_in(8) ? gj : gi);
    std::vector<cudaGraphNode_t> deps; std::string dn;
    for (unsigned k = R->below(3); k > 0 && !of.empty(); k--) { auto q = any(R->one_in(25) ? gj : gi); if (q) { deps.push_back(q); dn += " " + place(q); } }
    cudaGraphNode_t made = 0; std::string at = "(" + n("g", gi) + ", after" + (dn.empty() ? " none" : dn) + ")";
    auto adds = [&](const std::string& what, auto call) { step(what + at, [&] { return call(); }, [&](J& j) { j.nz("node", made).str("graph", shape(g[gi])); }); };
    if (what < 14) { bool bad = R->one_in(10); auto p = kernel(c, bad); adds(bad ? "cudaGraphAddKernelNode too large" : "cudaGraphAddKernelNode", [&] { return cudaGraphAddKernelNode(&made, g[gi], deps.data(), deps.size(), &p); }); }
    else if (what < 18) adds("cudaGraphAddEmptyNode", [&] { return cudaGraphAddEmptyNode(&made, g[gi], deps.data(), deps.size()); });
    else if (what < 22) { cudaMemsetParams p = {}; p.dst = D + set; p.value = set; p.elementSize = R->one_in(8) ? 3 : 4; p.width = 1; p.height = 1; adds("cudaGraphAddMemsetNode", [&] { return cudaGraphAddMemsetNode(&made, g[gi], deps.data(), deps.size(), &p); }); }
    else if (what < 26) { bool up = R->below(2); size_t bytes = R->one_in(8) ? 0 : 4; adds(up ? "cudaGraphAddMemcpyNode1D up " + n("", bytes) : "cudaGraphAddMemcpyNode1D on the device " + n("", bytes), [&] { return cudaGraphAddMemcpyNode1D(&made, g[gi], deps.data(), deps.size(), D + copied, up ? H + copied : D + 1024 + copied, bytes, cudaMemcpyDefault); }); }
    else if (what < 29) { cudaHostNodeParams p = {host, nullptr}; if (R->one_in(10)) p.fn = nullptr; adds("cudaGraphAddHostNode", [&] { return cudaGraphAddHostNode(&made, g[gi], deps.data(), deps.size(), &p); }); }
    else if (what < 31) adds("cudaGraphAddEventRecordNode", [&] { return cudaGraphAddEventRecordNode(&made, g[gi], deps.data(), deps.size(), e[ev]); });
    else if (what < 33) adds("cudaGraphAddEventWaitNode", [&] { return cudaGraphAddEventWaitNode(&made, g[gi], deps.data(), deps.size(), e[ev]); });
    // A graph as a child of itself is where real CUDA recurses to death.
    else if (what < 37 && gi == gj) continue;
    else if (what < 37) adds("cudaGraphAddChildGraphNode of " + n("g", gj) + " ", [&] { return cudaGraphAddChildGraphNode(&made, g[gi], deps.data(), deps.size(), g[gj]); });
    else if (what < 39) { cudaMemAllocNodeParams p = {}; p.poolProps.allocType = cudaMemAllocationTypePinned; p.poolProps.location.type = cudaMemLocationTypeDevice; p.bytesize = 4096; adds("cudaGraphAddMemAllocNode", [&] { return cudaGraphAddMemAllocNode(&made, g[gi], deps.data(), deps.size(), &p); });
      if (made && R->below(3)) { cudaGraphNode_t freed = 0; step("cudaGraphAddMemFreeNode after it", [&] { return cudaGraphAddMemFreeNode(&freed, g[gi], &made, 1, p.dptr); }, [&](J& j) { j.nz("node", freed); }); } }
    else if (what < 45) step("cudaGraphAddDependencies(" + n("g", gi) + ", " + place(one) + ", " + place(two) + ")", [&] { return cudaGraphAddDependencies(g[gi], &one, &two, one && two); }, [&](J& j) { j.str("graph", shape(g[gi])); });
    else if (what < 48) step("cudaGraphRemoveDependencies(" + n("g", gi) + ", " + place(one) + ", " + place(two) + ")", [&] { return cudaGraphRemoveDependencies(g[gi], &one, &two, one && two); }, [&](J& j) { j.str("graph", shape(g[gi])); });
    else if (what < 51) { if (!one) continue; step("cudaGraphDestroyNode(" + place(one) + ")", [&] { return cudaGraphDestroyNode(one); }, [&](J& j) { j.str("graph", shape(g[gi])); }); }
    else if (what < 53) { size_t count = 0; step("cudaGraphGetRootNodes(" + n("g", gi) + ")", [&] { return cudaGraphGetRootNodes(g[gi], nullptr, &count); }, [&](J& j) { j.u("n", count); }); }
    else if (what < 55) { if (!one) continue; size_t count = 0, after = 0; cudaGraphNodeGetDependentNodes(one, nullptr, &after); step("cudaGraphNodeGetDependencies(" + place(one) + ")", [&] { return cudaGraphNodeGetDependencies(one, nullptr, &count); }, [&](J& j) { j.u("n", count).u("dependent", after); }); }
    else if (what < 57) { if (gi == gj) continue; cudaGraph_t copy = 0; step("cudaGraphClone(&" + n("g", gj) + ", " + n("g", gi) + ")", [&] { return cudaGraphClone(&copy, g[gi]); }, [&](J& j) { j.str("graph", copy ? shape(copy) : "NULL"); });
      if (copy) { if (one) { cudaGraphNode_t found = 0; step("cudaGraphNodeFindInClone(" + place(one) + ")", [&] { return cudaGraphNodeFindInClone(&found, one, copy); }, [&](J& j) { j.nz("node", found); }); } cudaGraphDestroy(g[gj]); g[gj] = copy; } }
    else if (what < 58) { if (!one) continue; cudaGraph_t child = 0; step("cudaGraphChildGraphNodeGetGraph(" + place(one) + ")", [&] { return cudaGraphChildGraphNodeGetGraph(one, &child); }, [&](J& j) { j.str("graph", child ? shape(child) : "NULL"); }); }
    else if (what < 66) { unsigned flags = R->below(3) ? 0 : R->below(2) ? 1 : 8; cudaGraphExec_t made = 0; step("cudaGraphInstantiate(&" + n("x", xi) + ", " + n("g", gi) + ", " + n("", flags) + ")", [&] { return cudaGraphInstantiate(&made, g[gi], flags); }, [&](J& j) { j.nz("x", made); }); if (made) { if (x[xi]) cudaGraphExecDestroy(x[xi]); x[xi] = made; } }
    else if (what < 76) launch_it(xi);
    else if (what < 84) { cudaGraphExecUpdateResultInfo info = {}; step("cudaGraphExecUpdate(" + n("x", xi) + ", " + n("g", gi) + ")", [&] { return cudaGraphExecUpdate(x[xi], g[gi], &info); }, [&](J& j) { j.i("result", info.result).str("node", place(info.errorNode)).str("from", place(info.errorFromNode)); }); }
    else if (what < 87) { if (!one) continue; auto p = kernel(c, R->one_in(6)); step("cudaGraphExecKernelNodeSetParams(" + n("x", xi) + ", " + place(one) + ")", [&] { return cudaGraphExecKernelNodeSetParams(x[xi], one, &p); }); }
    else if (what < 89) { if (!one) continue; auto p = kernel(c, R->one_in(6)); step("cudaGraphKernelNodeSetParams(" + place(one) + ")", [&] { return cudaGraphKernelNodeSetParams(one, &p); }); }
    else if (what < 91) { if (!one) continue; step("cudaGraphExecMemcpyNodeSetParams1D(" + n("x", xi) + ", " + place(one) + ")", [&] { return cudaGraphExecMemcpyNodeSetParams1D(x[xi], one, D + copied, D + 1024 + copied, 4, cudaMemcpyDefault); }); }
    else if (what < 93) { if (!one) continue; unsigned on = R->below(2), is = 9; step("cudaGraphNodeSetEnabled(" + n("x", xi) + ", " + place(one) + ", " + n("", on) + ")", [&] { return cudaGraphNodeSetEnabled(x[xi], one, on); }); step("cudaGraphNodeGetEnabled(" + n("x", xi) + ", " + place(one) + ")", [&] { return cudaGraphNodeGetEnabled(x[xi], one, &is); }, [&](J& j) { j.u("is", is); }); }
    else if (what < 94) { if (!one) continue; step("cudaGraphExecEventRecordNodeSetEvent(" + n("x", xi) + ", " + place(one) + ")", [&] { return cudaGraphExecEventRecordNodeSetEvent(x[xi], one, e[ev]); }); }
    else if (what < 95) { if (!one) continue; step("cudaGraphExecChildGraphNodeSetParams(" + n("x", xi) + ", " + place(one) + ", " + n("g", gj) + ")", [&] { return cudaGraphExecChildGraphNodeSetParams(x[xi], one, g[gj]); }); }
    else if (what < 96) step("cudaGraphUpload(" + n("x", xi) + ", s)", [&] { return cudaGraphUpload(x[xi], s); });
    else if (what < 97) { unsigned long long flags = 99; step("cudaGraphExecGetFlags(" + n("x", xi) + ")", [&] { return cudaGraphExecGetFlags(x[xi], &flags); }, [&](J& j) { j.u("flags", flags); }); }
    else if (what < 98) { if (!one) continue; cudaMemsetParams p = {}; p.dst = D + set; p.value = set; p.elementSize = 4; p.width = 1; p.height = 1; step("cudaGraphExecMemsetNodeSetParams(" + n("x", xi) + ", " + place(one) + ")", [&] { return cudaGraphExecMemsetNodeSetParams(x[xi], one, &p); }); }
    else if (what < 99) { if (!one) continue; cudaGraph_t in = 0; cudaGraphNodeType type = (cudaGraphNodeType)99; step("cudaGraphNodeGetType(" + place(one) + ")", [&] { return cudaGraphNodeGetType(one, &type); }, [&](J& j) { j.i("type", type); }); }
    else { step("cudaGraphDestroy(" + n("g", gi) + ")", [&] { return cudaGraphDestroy(g[gi]); }); cudaGraphCreate(&g[gi], 0); }
  }
  launch_it(0); launch_it(1);
  values("values");
  cudaStreamDestroy(s); for (auto q : e) cudaEventDestroy(q); cudaDeviceSynchronize(); cudaDeviceGraphMemTrim(0); cudaGetLastError();
}
}  // namespace

// Which calls a capture in the same context refuses, and which of those spoil it.
#define BESIDE(call) for (int mode = 0; mode < 3; mode++) { cudaStream_t q; cudaStreamCreateWithFlags(&q, 1); cudaStreamBeginCapture(q, (cudaStreamCaptureMode)mode); cudaGetLastError(); int sig; long long r = guarded<int>([&] { return (int)(call); }, &sig); cudaGetLastError(); cudaStreamCaptureStatus st = (cudaStreamCaptureStatus)9; cudaStreamIsCapturing(q, &st); cudaGraph_t made = 0; cudaError_t e = cudaStreamEndCapture(q, &made); cudaGetLastError(); \
  note(#call, J().i("mode", mode).i("code", r).i("status", st).str("end", rtname(e))); if (made) cudaGraphDestroy(made); cudaStreamDestroy(q); }
static void beside() {
  start(); CASE("beside a capture of another stream"); cudaStream_t s, made_s; cudaStreamCreateWithFlags(&s, 1); cudaEvent_t e, e2; cudaEventCreate(&e); cudaEventCreate(&e2); cudaEventRecord(e, s); cudaEventRecord(e2, s); cudaDeviceSynchronize();
  cudaGraph_t g, copy; cudaGraphNode_t node; cudaGraphExec_t x, y; cudaGraphCreate(&g, 0); cudaGraphAddEmptyNode(&node, g, nullptr, 0); cudaGraphInstantiate(&x, g, 0); void *p, *h; size_t n1, n2; int i; unsigned u; CUdeviceptr dp; CUmodule m; CUcontext c; float ms; cudaMemPool_t pool; cudaMemPoolProps props = {}; props.allocType = cudaMemAllocationTypePinned; props.location.type = cudaMemLocationTypeDevice; cudaFuncAttributes fa; cudaDeviceProp prop; cudaArray_t array; cudaChannelFormatDesc d = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat); cudaPointerAttributes pa; static char page[8192]; cudaMalloc(&p, 64); cudaMallocHost(&h, 64);
  BESIDE(cudaMalloc(&p, 64)) BESIDE(cudaFree(p)) BESIDE(cudaFree(nullptr)) BESIDE(cudaMallocHost(&h, 64)) BESIDE(cudaFreeHost(h)) BESIDE(cudaMallocManaged(&p, 64)) BESIDE(cudaMallocPitch(&p, &n1, 64, 4)) BESIDE(cudaMallocArray(&array, &d, 8, 8)) BESIDE(cudaHostRegister(page, 4096, 0)) BESIDE(cudaHostUnregister(page)) BESIDE(cudaMallocAsync(&p, 64, s)) BESIDE(cudaMallocAsync(&p, 0, s)) BESIDE(cudaFreeAsync(p, s)) BESIDE(cudaFreeAsync(nullptr, s))
  BESIDE(cudaMemcpy(D, D + 64, 4, cudaMemcpyDefault)) BESIDE(cudaMemcpy(D, &u, 4, cudaMemcpyDefault)) BESIDE(cudaMemcpy(&u, D, 4, cudaMemcpyDefault)) BESIDE(cudaMemcpyAsync(D, H, 4, cudaMemcpyDefault, s)) BESIDE(cudaMemcpyAsync(D, &u, 4, cudaMemcpyDefault, s)) BESIDE(cudaMemcpyAsync(&u, D, 4, cudaMemcpyDefault, s)) BESIDE(cudaMemset(D, 0, 4)) BESIDE(cudaMemsetAsync(D, 0, 4, s)) BESIDE(cudaMemcpyToSymbol(gvar, &u, 4)) BESIDE(cudaMemcpyFromSymbol(&u, gvar, 4)) BESIDE(cudaGetSymbolAddress(&p, gvar)) BESIDE(cudaGetSymbolSize(&n1, gvar))
  BESIDE(cudaStreamQuery(s)) BESIDE(cudaStreamSynchronize(s)) BESIDE(cudaStreamQuery(0)) BESIDE(cudaStreamSynchronize(0)) BESIDE(cudaDeviceSynchronize()) BESIDE(cudaEventQuery(e)) BESIDE(cudaEventSynchronize(e)) BESIDE(cudaEventElapsedTime(&ms, e, e2)) BESIDE(cudaEventRecord(e, s)) BESIDE(cudaStreamWaitEvent(s, e, 0)) BESIDE(cudaEventCreate(&e2)) BESIDE([&] { cudaEventCreate(&e2); return cudaEventDestroy(e2); }()) BESIDE(cudaStreamCreate(&made_s)) BESIDE([&] { cudaStreamCreate(&made_s); return cudaStreamDestroy(made_s); }()) BESIDE(cudaStreamGetFlags(s, &u)) BESIDE(cudaStreamGetPriority(s, &i)) BESIDE(cudaLaunchHostFunc(s, host, nullptr)) BESIDE(cudaStreamAddCallback(s, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0)) BESIDE(launch(&k_empty, 1, 1, 0, s)) BESIDE(launch(&k_vars, 1, 1, 0, 0, (uint64_t)D))
  BESIDE(cudaGraphInstantiate(&y, g, 0)) BESIDE(cudaGraphInstantiateWithFlags(&y, g, 0)) BESIDE([&] { cudaGraphInstantiateParams ip = {}; return cudaGraphInstantiateWithParams(&y, g, &ip); }()) BESIDE(cudaGraphUpload(x, s)) BESIDE(cudaGraphLaunch(x, s)) BESIDE([&] { cudaGraphExecUpdateResultInfo info; return cudaGraphExecUpdate(x, g, &info); }()) BESIDE(cudaGraphExecDestroy(y)) BESIDE(cudaGraphClone(&copy, g)) BESIDE([&] { cudaGraphCreate(&copy, 0); return cudaGraphDestroy(copy); }()) BESIDE(cudaGraphAddEmptyNode(&node, g, nullptr, 0)) BESIDE(cudaDeviceGraphMemTrim(0))
  BESIDE(cudaMemGetInfo(&n1, &n2)) BESIDE(cudaPointerGetAttributes(&pa, D)) BESIDE(cudaFuncGetAttributes(&fa, &k_empty)) BESIDE(cudaFuncSetAttribute(&k_dyn, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024)) BESIDE(cudaFuncSetCacheConfig(&k_empty, cudaFuncCachePreferL1)) BESIDE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&i, &k_empty, 64, 0)) BESIDE(cudaGetDeviceProperties(&prop, 0)) BESIDE(cudaDeviceGetAttribute(&i, cudaDevAttrWarpSize, 0)) BESIDE(cudaDeviceGetLimit(&n1, cudaLimitStackSize)) BESIDE(cudaDeviceSetLimit(cudaLimitStackSize, 2048)) BESIDE(cudaSetDevice(0)) BESIDE(cudaGetDevice(&i)) BESIDE(cudaDeviceGetDefaultMemPool(&pool, 0)) BESIDE(cudaMemPoolTrimTo(pool, 0)) BESIDE(cudaMemPoolCreate(&pool, &props)) BESIDE(cudaMemPoolDestroy(pool)) BESIDE([&] { cudaIpcMemHandle_t ih; return cudaIpcGetMemHandle(&ih, D); }()) BESIDE(cudaDeviceCanAccessPeer(&i, 0, 0)) BESIDE(cudaMemPrefetchAsync(p, 64, 0, s)) BESIDE(cudaCtxResetPersistingL2Cache()) BESIDE(cudaStreamAttachMemAsync(s, p, 0, cudaMemAttachGlobal))
  BESIDE(cuMemAlloc(&dp, 64)) BESIDE(cuMemFree(dp)) BESIDE(cuMemHostAlloc(&h, 64, 0)) BESIDE(cuMemFreeHost(h)) BESIDE(cuMemAllocAsync(&dp, 64, s)) BESIDE(cuMemFreeAsync(dp, s)) BESIDE(cuMemcpy((CUdeviceptr)D, (CUdeviceptr)(D + 64), 4)) BESIDE(cuMemcpyDtoH(&u, (CUdeviceptr)D, 4)) BESIDE(cuMemcpyHtoD((CUdeviceptr)D, &u, 4)) BESIDE(cuMemsetD32((CUdeviceptr)D, 0, 1)) BESIDE(cuModuleLoadData(&m, kPtx)) BESIDE(cuModuleUnload(m)) BESIDE(cuStreamQuery(s)) BESIDE(cuStreamSynchronize(s)) BESIDE(cuCtxSynchronize()) BESIDE(cuEventQuery(e)) BESIDE(cuStreamWriteValue32(s, (CUdeviceptr)D, 1, 0)) BESIDE(cuStreamWaitValue32(s, (CUdeviceptr)D, 1, 0)) BESIDE(cuCtxGetLimit(&n1, CU_LIMIT_STACK_SIZE)) BESIDE(cuMemGetInfo(&n1, &n2)) BESIDE(cuMemAddressReserve(&dp, 1 << 21, 0, 0, 0)) BESIDE(cuMemAddressFree(dp, 1 << 21)) BESIDE(cuGraphInstantiate(&y, g, 0)) BESIDE(cuGraphLaunch(x, s)) BESIDE([&] { CUresult r = cuCtxCreate(&c, 0, 0); CUcontext o; if (!r) cuCtxPopCurrent(&o); return r; }())
}

// Whether a copy in an executable graph may become another, by what the sides are and how the copies were described.
static void copies() {
  start(); CASE("copies"); static unsigned page[64]; void* sides[] = {D, H, page}; const char* side_names[] = {"device", "pinned", "pageable"};
  struct Kind { int dst, src; } kinds[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}};
  auto named = [&](Kind k, bool plain) { return std::string(side_names[k.src]) + " to " + side_names[k.dst] + (plain ? ", default" : ""); };
  auto kind = [&](Kind k, bool plain) { return plain ? cudaMemcpyDefault : k.dst ? k.src ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost : k.src ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice; };
  for (auto from : kinds) for (int plain = 0; plain < 2; plain++) for (auto to : kinds) for (int then = 0; then < 2; then++) {
    cudaGraph_t g; cudaGraphNode_t node; cudaGraphExec_t x; cudaGraphCreate(&g, 0); cudaGraphAddMemcpyNode1D(&node, g, nullptr, 0, (char*)sides[from.dst] + 128, sides[from.src], 4, kind(from, plain)); cudaGraphInstantiate(&x, g, 0); cudaGetLastError();
    cudaError_t e = cudaGraphExecMemcpyNodeSetParams1D(x, node, (char*)sides[to.dst] + 128, sides[to.src], 4, kind(to, then)); cudaGetLastError(); note((named(from, plain) + " becomes " + named(to, then)).c_str(), J().str("gives", rtname(e))); cudaGraphExecDestroy(x); cudaGraphDestroy(g); }
}
// What an update says about graphs of other structure: each is the base with some edges more or less, or other nodes.
static void updates() {
  start(); CASE("updates"); struct Change { const char* name; std::vector<std::pair<int, int>> more, less; };
  std::vector<std::pair<int, int>> base = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}};
  Change changes[] = {{"none", {}, {}}, {"3>4", {{3, 4}}, {}}, {"0>3", {{0, 3}}, {}}, {"0>4", {{0, 4}}, {}}, {"4>0", {{4, 0}}, {}}, {"5>0", {{5, 0}}, {}}, {"4>1 4>2", {{4, 1}, {4, 2}}, {}}, {"4>2 4>1", {{4, 2}, {4, 1}}, {}}, {"without 0>1", {}, {{0, 1}}}, {"without 1>3", {}, {{1, 3}}}, {"without 4>5", {}, {{4, 5}}}, {"0>5 for 4>5", {{0, 5}}, {{4, 5}}}, {"2>1 for 0>1", {{2, 1}}, {{0, 1}}}, {"1>5 for 1>3", {{1, 5}}, {{1, 3}}}, {"5>3 for 2>3", {{5, 3}}, {{2, 3}}}, {"4>3 for 0>2", {{4, 3}}, {{0, 2}}}};
  for (auto& change : changes) {
    cudaGraph_t g, h; cudaGraphNode_t a[6], b[6]; cudaGraphExec_t x; cudaGraphCreate(&g, 0); cudaGraphCreate(&h, 0); for (int i = 0; i < 6; i++) { cudaGraphAddEmptyNode(&a[i], g, nullptr, 0); cudaGraphAddEmptyNode(&b[i], h, nullptr, 0); }
    for (auto& e : base) { cudaGraphAddDependencies(g, &a[e.first], &a[e.second], 1); if (std::find(change.less.begin(), change.less.end(), e) == change.less.end()) cudaGraphAddDependencies(h, &b[e.first], &b[e.second], 1); }
    for (auto& e : change.more) cudaGraphAddDependencies(h, &b[e.first], &b[e.second], 1);
    cudaGraphInstantiate(&x, g, 0); cudaGraphExecUpdateResultInfo info = {}; cudaError_t e = cudaGraphExecUpdate(x, h, &info); cudaGetLastError(); auto place = [&](cudaGraphNode_t q) { return q ? (int)(std::find(b, b + 6, q) - b) : -1; };
    note(change.name, J().str("gives", rtname(e)).i("result", info.result).i("node", place(info.errorNode)).i("from", place(info.errorFromNode))); cudaGraphExecDestroy(x); cudaGraphDestroy(g); cudaGraphDestroy(h); }
  // Children: their structure, and that of what is around them.
  CASE("updates of children"); for (int old = 0; old < 4; old++) for (int now = 0; now < 4; now++) {
    auto make = [&](int kind, cudaGraph_t& g, cudaGraphNode_t* n) { cudaGraph_t c; cudaGraphNode_t p, q; cudaGraphCreate(&c, 0); cudaGraphCreate(&g, 0); if (kind >= 2) cudaGraphAddEmptyNode(&p, c, nullptr, 0); if (kind >= 3) cudaGraphAddEmptyNode(&q, c, &p, 1); if (kind) cudaGraphAddChildGraphNode(n, g, nullptr, 0, c); else cudaGraphAddEmptyNode(n, g, nullptr, 0); cudaGraphAddEmptyNode(n + 1, g, n, 1); cudaGraphDestroy(c); };
    cudaGraph_t g, h; cudaGraphNode_t a[2], b[2]; make(old, g, a); make(now, h, b); cudaGraphExec_t x; cudaGraphInstantiate(&x, g, 0); cudaGraphExecUpdateResultInfo info = {}; cudaError_t e = cudaGraphExecUpdate(x, h, &info); cudaGetLastError();
    note((std::to_string(old) + " becomes " + std::to_string(now)).c_str(), J().str("gives", rtname(e)).i("result", info.result).i("node", !info.errorNode ? -1 : info.errorNode == b[0] ? 0 : info.errorNode == b[1] ? 1 : 2)); cudaGraphExecDestroy(x); cudaGraphDestroy(g); cudaGraphDestroy(h); }
}

// What is left of an application's own graph when a capture into it fails, and of one that the capture made.
static void failed() {
  start(); cudaStream_t s, s2; cudaStreamCreateWithFlags(&s, 1); cudaStreamCreateWithFlags(&s2, 1); cudaEvent_t e; cudaEventCreateWithFlags(&e, 2);
  auto left = [&](const char* name, const std::function<void()>& spoil, const std::function<cudaError_t(cudaGraph_t*)>& end) {
    CASE(name); cudaGraph_t g, got = 0, copy = 0; cudaGraphNode_t node; cudaGraphExec_t before = 0, x = 0; cudaGraphCreate(&g, 0); cudaGraphAddEmptyNode(&node, g, nullptr, 0); cudaGraphInstantiate(&before, g, 0);
    RT(cudaStreamBeginCaptureToGraph(s, g, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal)); launch(&k_empty, 1, 1, 0, s); spoil(); cudaGetLastError();
    size_t n = 99; RT(cudaGraphGetNodes(g, nullptr, &n), .u("n", n)); RT(end(&got), .i("the graph", got == g).nz("got", got)); n = 99; RT(cudaGraphGetNodes(g, nullptr, &n), .u("n", n)); cudaGraphExecUpdateResultInfo info = {}; RT(cudaGraphExecUpdate(before, g, &info), .i("result", info.result)); RT(cudaGraphAddEmptyNode(&node, g, nullptr, 0)); RT(cudaGraphClone(&copy, g)); RT(cudaGraphInstantiate(&x, g, 0)); RT(cudaGraphDestroyNode(node)); RT(cudaStreamBeginCaptureToGraph(s, g, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal)); cudaStreamEndCapture(s, &got); cudaGetLastError(); RT(cudaGraphDestroy(g)); };
  auto ends = [&](cudaGraph_t* g) { return cudaStreamEndCapture(s, g); };
  left("well", [] {}, ends); left("spoiled", [] { cudaDeviceSynchronize(); }, ends);
  left("unjoined", [&] { cudaEventRecord(e, s); cudaStreamWaitEvent(s2, e, 0); launch(&k_empty, 1, 1, 0, s2); }, ends);
  left("of another thread", [] {}, [&](cudaGraph_t* g) { cudaError_t r; other->run([&] { r = cudaStreamEndCapture(s, g); }); return r; });
  left("stream destroyed", [&] { cudaStreamDestroy(s); cudaStreamCreateWithFlags(&s, 1); }, ends);
}

GROUP(failed_captures) { failed(); }
GROUP(copies_become) { copies(); }
GROUP(structures) { updates(); }
GROUP(beside_a_capture) { beside(); }
GROUP_T(capture_sequences, 300) { seeds(capture, 1, 24); }
GROUP_T(graph_sequences, 300) { seeds(graph, 1, 24); }
ORACLE_MAIN("sequences")
