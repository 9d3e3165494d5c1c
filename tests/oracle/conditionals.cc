// Area 18: conditional nodes of graphs: handles, what nodes and bodies are refused, when a value is looked at, what updates reach.
#include "kernels.h"
static const char kCond[] = R"PTX(
.version 8.4
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);
// *p += 1; sets the condition to *p < n ? v : w
.visible .entry k_until(.param .u64 p, .param .u32 n, .param .u64 h, .param .u32 v, .param .u32 w)
{ .reg .u64 %t<2>; .reg .u32 %r<5>; .reg .pred %p; ld.param.u64 %t0, [p]; ld.param.u32 %r0, [n]; ld.param.u64 %t1, [h]; ld.param.u32 %r1, [v]; ld.param.u32 %r2, [w];
  ld.u32 %r3, [%t0]; add.u32 %r3, %r3, 1; st.u32 [%t0], %r3; setp.lt.u32 %p, %r3, %r0; selp.u32 %r4, %r1, %r2, %p;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %t1; st.param.b32 [b], %r4; call.uni cudaGraphSetConditional, (a, b); } ret; }
.visible .entry k_inc(.param .u64 p) { .reg .u64 %t; .reg .u32 %r; ld.param.u64 %t, [p]; atom.global.add.u32 %r, [%t], 1; ret; }
)PTX";
static CUcontext ctx; static CUfunction f_until, f_inc; static CUstream s, s2; static CUgraph g; static unsigned* D; static CUgraphExec x;
static void init() {
  cudaFree(0); cuCtxGetCurrent(&ctx); cudaMalloc((void**)&D, 4096); cudaMemset(D, 0, 4096); cudaDeviceSynchronize();
  CUmodule m; if (cuModuleLoadData(&m, kCond) || cuModuleGetFunction(&f_until, m, "k_until") || cuModuleGetFunction(&f_inc, m, "k_inc")) NOTE("no module");
  cuStreamCreate(&s, 1); cuStreamCreate(&s2, 1); cuGraphCreate(&g, 0);
}
static unsigned at(int i) { unsigned v = 0xdead; cudaDeviceSynchronize(); cudaMemcpy(&v, D + i, 4, cudaMemcpyDefault); return v; }
static void zero() { cudaMemset(D, 0, 4096); cudaDeviceSynchronize(); }
static CUgraphNodeParams of_if(CUgraphConditionalHandle h, CUgraphConditionalNodeType type, unsigned size) {
  CUgraphNodeParams p = {}; p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL; p.conditional.handle = h; p.conditional.type = type; p.conditional.size = size; p.conditional.ctx = ctx; return p;
}
static CUgraphNode until(CUgraph to, CUgraphNode after, unsigned* p, unsigned n, CUgraphConditionalHandle h, unsigned v, unsigned w) {
  void* a[] = {&p, &n, &h, &v, &w}; CUDA_KERNEL_NODE_PARAMS k = {}; k.func = f_until; k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1; k.kernelParams = a;
  CUgraphNode node = 0; cuGraphAddKernelNode(&node, to, &after, after != 0, &k); return node;
}
static CUDA_KERNEL_NODE_PARAMS kinc; static unsigned* kp; static void* ka[1];
static CUDA_KERNEL_NODE_PARAMS* inc_of(unsigned* p) { kp = p; ka[0] = &kp; kinc = {}; kinc.func = f_inc; kinc.gridDimX = kinc.gridDimY = kinc.gridDimZ = kinc.blockDimX = kinc.blockDimY = kinc.blockDimZ = 1; kinc.kernelParams = ka; return &kinc; }
static CUgraphNode inc(CUgraph to, CUgraphNode after, unsigned* p) { CUgraphNode node = 0; cuGraphAddKernelNode(&node, to, &after, after != 0, inc_of(p)); return node; }
static CUgraphConditionalHandle handle(CUgraph of, unsigned value, unsigned flags) { CUgraphConditionalHandle h = 0; cuGraphConditionalHandleCreate(&h, of, ctx, value, flags); return h; }
static CUgraph cond(CUgraphNode* n, CUgraph to, CUgraphNode after, CUgraphConditionalHandle h, CUgraphConditionalNodeType t, unsigned size, CUgraph* all = nullptr) {
  CUgraphNodeParams p = of_if(h, t, size); *n = 0; if (cuGraphAddNode(n, to, &after, after != 0, &p)) return 0; for (unsigned i = 0; all && i < size; i++) all[i] = p.conditional.phGraph_out[i]; return p.conditional.phGraph_out[0];
}
#define IF CU_GRAPH_COND_TYPE_IF
#define WHILE CU_GRAPH_COND_TYPE_WHILE
#define SWITCH CU_GRAPH_COND_TYPE_SWITCH
GROUP(handles) {
  init(); CASE("create"); CUgraphConditionalHandle h = 0, h2 = 0; DR(cuGraphConditionalHandleCreate(&h, g, ctx, 0, 0), .i("zero", h == 0)); DR(cuGraphConditionalHandleCreate(&h2, g, ctx, 7, 1), .i("same", h == h2)); DR(cuGraphConditionalHandleCreate(&h, g, ctx, 0, 2)); DR(cuGraphConditionalHandleCreate(&h, g, nullptr, 0, 0)); DR(cuGraphConditionalHandleCreate(nullptr, g, ctx, 0, 0)); DR(cuGraphConditionalHandleCreate(&h, nullptr, ctx, 0, 0)); cudaGraphConditionalHandle rh = 0;
  RT(cudaGraphConditionalHandleCreate(&rh, (cudaGraph_t)g, 1, 1), .i("zero", rh == 0)); RT(cudaGraphConditionalHandleCreate(&rh, (cudaGraph_t)g, 1, 3)); RT(cudaGraphConditionalHandleCreate(&rh, nullptr, 1, 0)); RT(cudaGraphConditionalHandleCreate(nullptr, (cudaGraph_t)g, 1, 0));
  CASE("unused"); CUDA_GRAPH_INSTANTIATE_PARAMS ip = {}; DR(cuGraphInstantiateWithParams(&x, g, &ip), .i("result", ip.result_out).nz("node", ip.hErrNode_out)); DR(cuGraphInstantiateWithFlags(&x, g, 0)); CUgraphNode n; inc(g, 0, D); ip = {}; DR(cuGraphInstantiateWithParams(&x, g, &ip), .i("result", ip.result_out)); cond(&n, g, 0, h2, IF, 1); DR(cuGraphInstantiateWithFlags(&x, g, 0));
  CUgraph q; cuGraphCreate(&q, 0); DR(cuGraphClone(&q, g));
}
GROUP(nodes) {
  init(); CASE("refused"); CUgraphNode n = 0; CUgraphConditionalHandle h = handle(g, 0, 1); CUgraphNodeParams p;
  for (int type = 0; type <= 3; type++) for (unsigned size = 0; size <= 3; size++) { NOTE("type and size", .i("type", type).u("size", size)); p = of_if(handle(g, 0, 1), (CUgraphConditionalNodeType)type, size); DR(cuGraphAddNode(&n, g, nullptr, 0, &p), .i("graphs", p.conditional.phGraph_out != nullptr)); }
  p = of_if(0, IF, 1); DR(cuGraphAddNode(&n, g, nullptr, 0, &p)); p = of_if(h, IF, 1); p.conditional.ctx = nullptr; DR(cuGraphAddNode(&n, g, nullptr, 0, &p)); p = of_if(h, IF, 1); DR(cuGraphAddNode(nullptr, g, nullptr, 0, &p)); p = of_if(h, IF, 1); DR(cuGraphAddNode(&n, nullptr, nullptr, 0, &p)); p = of_if(h, IF, 1); p.reserved2 = 1; DR(cuGraphAddNode(&n, g, nullptr, 0, &p));
  CUgraph q; cuGraphCreate(&q, 0); CASE("a handle of another graph"); h = handle(q, 0, 1); p = of_if(h, IF, 1); DR(cuGraphAddNode(&n, g, nullptr, 0, &p)); CASE("a handle twice"); h = handle(g, 0, 1); p = of_if(h, IF, 1); DR(cuGraphAddNode(&n, g, nullptr, 0, &p)); CUgraphNode n2 = 0; p = of_if(h, IF, 1); DR(cuGraphAddNode(&n2, g, nullptr, 0, &p)); CASE("after the node is gone"); DR(cuGraphDestroyNode(n)); p = of_if(h, IF, 1); DR(cuGraphAddNode(&n2, g, nullptr, 0, &p));
  CASE("queries"); CUgraphNodeType t; h = handle(g, 0, 1); p = of_if(h, SWITCH, 3); DR(cuGraphAddNode(&n, g, nullptr, 0, &p)); DR(cuGraphNodeGetType(n, &t), .i("t", t)); CUgraph b = p.conditional.phGraph_out[1]; size_t k = 9; DR(cuGraphGetNodes(b, nullptr, &k), .u("n", k)); DR(cuGraphDestroy(b)); CUgraph e; DR(cuGraphChildGraphNodeGetGraph(n, &e)); NOTE("graphs", .i("differ", p.conditional.phGraph_out[0] != b));
  p = of_if(h, SWITCH, 3); DR(cuGraphNodeSetParams(n, &p)); p = of_if(h, SWITCH, 2); DR(cuGraphNodeSetParams(n, &p));
  CASE("runtime"); cudaGraphConditionalHandle rh; cudaGraphConditionalHandleCreate(&rh, (cudaGraph_t)g, 1, 1); cudaGraphNodeParams r = {}; r.type = cudaGraphNodeTypeConditional; r.conditional.handle = rh; r.conditional.type = cudaGraphCondTypeWhile; r.conditional.size = 1; cudaGraphNode_t rn; RT(cudaGraphAddNode(&rn, (cudaGraph_t)g, nullptr, 0, &r), .i("graphs", r.conditional.phGraph_out != nullptr)); cudaGraphNodeType rt = (cudaGraphNodeType)0; RT(cudaGraphNodeGetType(rn, &rt), .i("t", rt));
}
static void body_case(const char* what, CUresult add, CUgraph of) { NOTE(what, .str("add", drname(add))); CUDA_GRAPH_INSTANTIATE_PARAMS ip = {}; DR(cuGraphInstantiateWithParams(&x, of, &ip), .i("result", ip.result_out)); }
GROUP(bodies) {
  init(); CASE("what may be in a body"); CUevent e; cuEventCreate(&e, 0); for (int kind = 0; kind < 11; kind++) {
    CUgraph q; cuGraphCreate(&q, 0); CUgraphNode n, m = 0; CUgraph b = cond(&n, q, 0, handle(q, 0, 1), IF, 1); CUresult r = CUDA_SUCCESS; const char* what = "";
    CUDA_HOST_NODE_PARAMS hp = {}; hp.fn = [](void*) {}; CUDA_MEM_ALLOC_NODE_PARAMS ap = {}; ap.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED; ap.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE; ap.bytesize = 64; CUDA_MEMSET_NODE_PARAMS mp = {}; mp.dst = (CUdeviceptr)D; mp.elementSize = 4; mp.width = 1; mp.height = 1; CUgraph child; cuGraphCreate(&child, 0);
    CUstreamBatchMemOpParams op = {}; op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32; op.writeValue.address = (CUdeviceptr)D; CUDA_BATCH_MEM_OP_NODE_PARAMS bp = {}; bp.ctx = ctx; bp.count = 1; bp.paramArray = &op;
    CUDA_MEMCPY3D cp = {}; static unsigned hostword; cp.srcMemoryType = CU_MEMORYTYPE_HOST; cp.srcHost = &hostword; cp.dstMemoryType = CU_MEMORYTYPE_DEVICE; cp.dstDevice = (CUdeviceptr)D; cp.WidthInBytes = 4; cp.Height = cp.Depth = 1;
    switch (kind) { case 0: what = "nothing"; break; case 1: what = "empty"; r = cuGraphAddEmptyNode(&m, b, nullptr, 0); break; case 2: what = "host"; r = cuGraphAddHostNode(&m, b, nullptr, 0, &hp); break; case 3: what = "memset"; r = cuGraphAddMemsetNode(&m, b, nullptr, 0, &mp, ctx); break;
      case 4: what = "alloc"; r = cuGraphAddMemAllocNode(&m, b, nullptr, 0, &ap); break; case 5: what = "record"; r = cuGraphAddEventRecordNode(&m, b, nullptr, 0, e); break; case 6: what = "wait"; r = cuGraphAddEventWaitNode(&m, b, nullptr, 0, e); break; case 7: what = "memop"; r = cuGraphAddBatchMemOpNode(&m, b, nullptr, 0, &bp); break;
      case 8: what = "child"; r = cuGraphAddChildGraphNode(&m, b, nullptr, 0, child); break; case 9: what = "child with a host node"; cuGraphAddHostNode(&m, child, nullptr, 0, &hp); r = cuGraphAddChildGraphNode(&m, b, nullptr, 0, child); break; case 10: what = "pageable copy"; r = cuGraphAddMemcpyNode(&m, b, nullptr, 0, &cp, ctx); break; }
    body_case(what, r, q); }
  CASE("clones and children"); CUgraphNode n; cond(&n, g, 0, handle(g, 0, 1), IF, 1); CUgraph q, c; DR(cuGraphClone(&c, g)); cuGraphCreate(&q, 0); DR(cuGraphAddChildGraphNode(&n, q, nullptr, 0, g)); CUgraphExec y; DR(cuGraphInstantiateWithFlags(&x, g, 0)); DR(cuGraphInstantiateWithFlags(&y, g, 0)); DR(cuGraphExecDestroy(x)); DR(cuGraphInstantiateWithFlags(&y, g, 0)); DR(cuGraphInstantiateWithFlags(&x, g, 4)); size_t k = 1; cuGraphGetNodes(g, &n, &k); DR(cuGraphDestroyNode(n));
}
GROUP(values) {
  init(); CUgraphNode n, k; CUgraph b; CUgraphConditionalHandle h; CUgraph all[4];
  for (unsigned flags = 0; flags < 2; flags++) for (unsigned value = 0; value < 2; value++) { CUgraph q; cuGraphCreate(&q, 0); zero(); CASE("if, default alone"); NOTE("flags, value", .u("f", flags).u("v", value)); h = handle(q, value, flags); b = cond(&n, q, 0, h, IF, 1); inc(b, 0, D); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); if (flags) NOTE("ran", .u("n", at(0))); DR(cuGraphLaunch(x, s)); if (flags) NOTE("ran", .u("n", at(0))); }
  for (unsigned n1 : {1u, 9u}) { CUgraph q; cuGraphCreate(&q, 0); zero(); CASE("if, else, set by a kernel"); h = handle(q, 0, 0); k = until(q, 0, D, n1, h, 5, 0); cond(&n, q, k, h, IF, 2, all); inc(all[0], 0, D + 1); inc(all[1], 0, D + 2); inc(q, n, D + 3); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("1", at(1)).u("2", at(2)).u("3", at(3))); }
  for (unsigned value : {0u, 1u, 2u, 3u, 4u, 0xffffffffu}) { CUgraph q; cuGraphCreate(&q, 0); zero(); CASE("switch"); h = handle(q, value, 1); cond(&n, q, 0, h, SWITCH, 3, all); for (int i = 0; i < 3; i++) inc(all[i], 0, D + i); inc(q, n, D + 3); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("0", at(0)).u("1", at(1)).u("2", at(2)).u("3", at(3))); }
  for (unsigned value : {0u, 1u, 77u}) { CUgraph q; cuGraphCreate(&q, 0); zero(); CASE("while"); h = handle(q, value, 1); b = cond(&n, q, 0, h, WHILE, 1); k = inc(b, 0, D + 1); until(b, k, D, 10, h, 1, 0); inc(q, n, D + 3); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("0", at(0)).u("1", at(1)).u("3", at(3))); DR(cuGraphLaunch(x, s)); DR(cuGraphLaunch(x, s2)); NOTE("ran", .u("0", at(0)).u("1", at(1)).u("3", at(3))); }
  CASE("a value that stays"); { CUgraph q; cuGraphCreate(&q, 0); zero(); h = handle(q, 0, 0); b = cond(&n, q, 0, h, IF, 1); inc(b, 0, D + 1); until(q, n, D, 3, h, 1, 0); cuGraphInstantiateWithFlags(&x, q, 0); CUgraph w; cuGraphCreate(&w, 0); for (int i = 0; i < 4; i++) { DR(cuGraphLaunch(x, s)); at(0); if (i > 0) NOTE("ran", .u("1", at(1))); } }
}
GROUP(nested) {
  init(); CUgraphNode n, k; CUgraph b, c; CUgraphConditionalHandle h, i; 
  for (int where = 0; where < 2; where++) { CUgraph q; cuGraphCreate(&q, 0); zero(); CASE("a while in a while, the inner handle of"); NOTE(where ? "the body" : "the graph"); h = handle(q, 1, 1); b = cond(&n, q, 0, h, WHILE, 1); CUresult r = cuGraphConditionalHandleCreate(&i, where ? b : q, ctx, 1, 1); NOTE("handle", .str("r", drname(r))); CUgraphNode m; c = cond(&m, b, 0, i, WHILE, 1); NOTE("inner body", .i("made", c != 0)); if (!c) continue; inc(c, 0, D + 1); until(c, 0, D, 1000, i, 0, 0); until(b, m, D + 2, 3, h, 1, 0); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("inner", at(1)).u("outer", at(2))); }
  CASE("an if in a child in a body"); { CUgraph q, d; cuGraphCreate(&q, 0); cuGraphCreate(&d, 0); zero(); inc(d, 0, D); b = cond(&n, q, 0, handle(q, 1, 1), IF, 1); DR(cuGraphAddChildGraphNode(&k, b, nullptr, 0, d)); inc(b, k, D + 1); DR(cuGraphInstantiateWithFlags(&x, q, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("0", at(0)).u("1", at(1))); }
}
GROUP(updates) {
  init(); CUgraphNode n, k, m; CUgraph b; CASE("set"); CUgraphConditionalHandle h = handle(g, 1, 1); b = cond(&n, g, 0, h, IF, 1); k = inc(b, 0, D); DR(cuGraphInstantiateWithFlags(&x, g, 0)); DR(cuGraphExecKernelNodeSetParams(x, k, inc_of(D + 1))); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("0", at(0)).u("1", at(1))); DR(cuGraphKernelNodeSetParams(k, inc_of(D + 2))); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("1", at(1)).u("2", at(2)));
  CUgraphNodeParams p = of_if(h, IF, 1); DR(cuGraphExecNodeSetParams(x, n, &p)); DR(cuGraphNodeSetEnabled(x, n, 0)); unsigned en; DR(cuGraphNodeGetEnabled(x, n, &en)); DR(cuGraphNodeSetEnabled(x, k, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("1", at(1)));
  CASE("update"); CUgraphExecUpdateResultInfo i = {}; for (int kind = 0; kind < 6; kind++) { zero(); CUgraph q; cuGraphCreate(&q, 0); CUgraphConditionalHandle h2 = handle(q, kind == 1 ? 0 : 1, kind == 2 ? 0 : 1); CUgraph b2 = cond(&m, q, 0, h2, kind == 3 ? WHILE : kind == 4 ? SWITCH : IF, kind == 5 ? 2 : 1); inc(b2, 0, D + 3); i = {}; NOTE("kind", .i("kind", kind)); DR(cuGraphExecUpdate(x, q, &i), .i("result", i.result).nz("node", i.errorNode)); DR(cuGraphLaunch(x, s)); if (kind != 2) NOTE("ran", .u("2", at(2)).u("3", at(3))); cudaDeviceSynchronize(); }
  CASE("the graph goes"); DR(cuGraphDestroy(g)); DR(cuGraphLaunch(x, s)); cudaDeviceSynchronize(); size_t c = 9; DR(cuGraphGetNodes(b, nullptr, &c));
}
GROUP(captured) {
  init(); CASE("a body by capture"); CUgraphNode n; zero(); CUgraphConditionalHandle h = handle(g, 1, 1); CUgraph b = cond(&n, g, 0, h, WHILE, 1); DR(cuStreamBeginCaptureToGraph(s, b, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL)); unsigned* p = D; unsigned m = 5, v = 1, w = 0; void* a[] = {&p, &m, &h, &v, &w}; DR(cuLaunchKernel(f_until, 1, 1, 1, 1, 1, 1, 0, s, a, nullptr)); CUgraph e; DR(cuStreamEndCapture(s, &e), .i("same", e == b)); DR(cuGraphInstantiateWithFlags(&x, g, 0)); DR(cuGraphLaunch(x, s)); NOTE("ran", .u("0", at(0)));
  CASE("events around"); CUevent t0, t1; cuEventCreate(&t0, 0); cuEventCreate(&t1, 0); zero(); cuEventRecord(t0, s); DR(cuGraphLaunch(x, s)); cuEventRecord(t1, s); DR(cuStreamWaitEvent(s2, t1, 0)); cuMemcpyDtoDAsync((CUdeviceptr)(D + 9), (CUdeviceptr)D, 4, s2); NOTE("seen by another stream", .u("v", at(9))); DR(cuGraphUpload(x, s));
  CASE("a kernel outside of graphs"); zero(); DR(cuLaunchKernel(f_until, 1, 1, 1, 1, 1, 1, 0, s, a, nullptr)); DR(cuStreamSynchronize(s)); NOTE("ran", .u("0", at(0)));
  CASE("dot"); char path[] = "/tmp/dotXXXXXX"; int fd = mkstemp(path); DR(cuGraphDebugDotPrint(g, path, 1)); char buf[4096] = {}; ssize_t r = read(fd, buf, 4000); (void)r; unlink(path); if (getenv("ORACLE_DOT")) fprintf(stderr, "%s", buf);
}
ORACLE_MAIN("conditionals")
