// Graphs, built by hand and captured: every result is compared with what the host computes.
#include "cases.h"

#include <cuda.h>

#include <thread>

// What applications put into graphs: a node's value is made of the values of the nodes before it.
struct Inputs {
  const int* from[4];
  int count;
};

__global__ void combine(int* to, Inputs inputs, int salt) {
  int sum = salt;
  for (int i = 0; i < inputs.count; i++) sum = sum * 31 + *inputs.from[i];
  *to = sum;
}
__global__ void add(int* value, int amount) { atomicAdd(value, amount); }
__global__ void step(int* value, int from) { *value = *value == from ? from + 1 : -1000000; }
__global__ void set(int* value, int to) { *value = to; }

static int combined(const std::vector<int>& inputs, int salt) {
  for (int input : inputs) salt = (int)((unsigned)salt * 31u + (unsigned)input);
  return salt;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void* function, void** arguments) {
  cudaKernelNodeParams params = {};
  params.func = function;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}
template <class A, class B>
static cudaGraphNode_t kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void (*function)(A, B), A a, B b) {
  void* arguments[] = {&a, &b};
  return kernel(graph, after, (void*)function, arguments);
}
static cudaGraphExec_t ready(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}
static int value(const int* device) {
  int found = -1;
  OK(cudaMemcpy(&found, device, sizeof found, cudaMemcpyDeviceToHost));
  return found;
}

CASE(a_chain_keeps_its_order_over_many_launches) {
  Device<int> v(1);
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last = kernel(graph, {}, set, v.data, 0);
  for (int i = 0; i < 100; i++) last = kernel(graph, {last}, step, v.data, i);
  cudaGraphExec_t exec = ready(graph);
  OK(cudaGraphDestroy(graph));
  for (int launch = 0; launch < 20; launch++) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  EXPECT(value(v.data) == 100);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaStreamDestroy(stream));
}

static unsigned long long random_state = 1;
static unsigned random_below(unsigned n) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(random_state >> 33) % n;
}

CASE(random_graphs_of_kernels) {
  for (int seed = 1; seed <= 6; seed++) {
    random_state = seed;
    const int count = 60;
    Device<int> slots(count);
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> node(count);
    std::vector<int> want(count);
    for (int i = 0; i < count; i++) {
      Inputs inputs = {};
      std::vector<cudaGraphNode_t> after;
      std::vector<int> values;
      for (unsigned k = random_below(4); k-- && i;) {
        int from = random_below(i);
        bool twice = false;
        for (auto known : after) twice |= known == node[from];
        if (twice) continue;
        inputs.from[inputs.count++] = slots.data + from;
        after.push_back(node[from]);
        values.push_back(want[from]);
      }
      // Now and then a node that does nothing stands between.
      if (random_below(4) == 0 && !after.empty()) {
        cudaGraphNode_t empty;
        OK(cudaGraphAddEmptyNode(&empty, graph, after.data(), after.size()));
        after = {empty};
      }
      int* to = slots.data + i;
      int salt = random_below(1000);
      void* arguments[] = {&to, &inputs, &salt};
      node[i] = kernel(graph, after, (void*)combine, arguments);
      want[i] = combined(values, salt);
    }
    cudaGraphExec_t exec = ready(graph);
    for (int launch = 0; launch < 3; launch++) {
      OK(cudaMemset(slots.data, 0x5a, count * sizeof(int)));
      OK(cudaGraphLaunch(exec, 0));
      EXPECT(slots.host() == want);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  }
}

// A host node's inputs and output.
struct Sum {
  std::vector<const int*> from;
  int* to;
  int salt;
};
static void sum_on_host(void* data) {
  const Sum& sum = *(Sum*)data;
  std::vector<int> values;
  for (const int* from : sum.from) values.push_back(*from);
  *sum.to = combined(values, sum.salt);
}

// Kernels, copies between all kinds of memory, fills and calls on the host, in any order that their dependencies allow.
CASE(random_graphs_of_everything) {
  for (int seed = 1; seed <= 8; seed++) {
    random_state = 100 + seed;
    const int count = 48;
    enum Where { DEVICE, PINNED, PAGEABLE };
    Device<int> device(count);
    int* pinned;
    OK(cudaMallocHost(&pinned, count * sizeof(int)));
    std::vector<int> pageable(count);
    std::vector<Where> where(count);
    std::vector<int> want(count);
    std::vector<cudaGraphNode_t> node(count);
    std::vector<Sum> sums(count);
    auto place = [&](int i) { return where[i] == DEVICE ? device.data + i : where[i] == PINNED ? pinned + i : &pageable[i]; };
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < count; i++) {
      std::vector<int> from;
      for (unsigned k = random_below(4); k-- && i;) {
        int candidate = random_below(i);
        bool twice = false;
        for (int known : from) twice |= known == candidate;
        if (!twice) from.push_back(candidate);
      }
      int salt = random_below(1000);
      std::vector<cudaGraphNode_t> after;
      unsigned kind = random_below(4);
      auto keep = [&](auto fits) {
        std::vector<int> kept;
        for (int f : from)
          if (fits(where[f])) kept.push_back(f), after.push_back(node[f]);
        from = kept;
      };
      if (kind == 0) {
        // What a kernel reads: not pageable memory.
        keep([](Where w) { return w != PAGEABLE; });
        where[i] = random_below(2) ? DEVICE : PINNED;
        Inputs inputs = {};
        for (int f : from) inputs.from[inputs.count++] = place(f);
        int* to = place(i);
        void* arguments[] = {&to, &inputs, &salt};
        node[i] = kernel(graph, after, (void*)combine, arguments);
      } else if (kind == 1 && !from.empty()) {
        from.resize(1);
        after = {node[from[0]]};
        where[i] = (Where)random_below(3);
        OK(cudaGraphAddMemcpyNode1D(&node[i], graph, after.data(), after.size(), place(i), place(from[0]), sizeof(int),
                                    cudaMemcpyDefault));
        want[i] = want[from[0]];
        continue;
      } else if (kind == 2) {
        keep([](Where w) { return w != DEVICE; });
        where[i] = random_below(2) ? PINNED : PAGEABLE;
        for (int f : from) sums[i].from.push_back(place(f));
        sums[i].to = place(i);
        sums[i].salt = salt;
        cudaHostNodeParams params = {sum_on_host, &sums[i]};
        OK(cudaGraphAddHostNode(&node[i], graph, after.data(), after.size(), &params));
      } else {
        from.clear();
        where[i] = random_below(2) ? DEVICE : PINNED;
        cudaMemsetParams params = {};
        params.dst = place(i);
        params.elementSize = 4;
        params.width = params.height = 1;
        params.value = salt;
        OK(cudaGraphAddMemsetNode(&node[i], graph, nullptr, 0, &params));
      }
      std::vector<int> values;
      for (int f : from) values.push_back(want[f]);
      want[i] = combined(values, salt);
    }
    cudaGraphExec_t exec = ready(graph);
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int launch = 0; launch < 3; launch++) {
      memset(pinned, 0x77, count * sizeof(int));
      pageable.assign(count, 0x77);
      OK(cudaMemset(device.data, 0x77, count * sizeof(int)));
      OK(cudaDeviceSynchronize());
      // Two launches in a row: the second waits for the first.
      OK(cudaGraphLaunch(exec, stream));
      OK(cudaGraphLaunch(exec, stream));
      OK(cudaStreamSynchronize(stream));
      std::vector<int> on_device = device.host();
      for (int i = 0; i < count; i++) {
        int found = where[i] == DEVICE ? on_device[i] : *place(i);
        if (found != want[i]) fail("seed %d, launch %d: node %d in memory %d: %d, expected %d", seed, launch, i, where[i], found, want[i]);
      }
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaFreeHost(pinned));
  }
}

CASE(a_source_that_a_host_node_writes_is_copied_afterwards) {
  const size_t count = 3 << 18;  // 3 MiB: several staging buffers
  static std::vector<int> source, back;
  source.assign(count, -1);
  back.assign(count, -2);
  Device<int> middle(count);
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t write, up, down;
  cudaHostNodeParams params = {[](void*) { for (size_t i = 0; i < source.size(); i++) source[i] = (int)(i * 2654435761u); }, nullptr};
  OK(cudaGraphAddHostNode(&write, graph, nullptr, 0, &params));
  OK(cudaGraphAddMemcpyNode1D(&up, graph, &write, 1, middle.data, source.data(), count * 4, cudaMemcpyHostToDevice));
  OK(cudaGraphAddMemcpyNode1D(&down, graph, &up, 1, back.data(), middle.data, count * 4, cudaMemcpyDeviceToHost));
  cudaGraphExec_t exec = ready(graph);
  OK(cudaGraphLaunch(exec, 0));
  OK(cudaDeviceSynchronize());
  bool same = true;
  for (size_t i = 0; i < count; i++) same &= back[i] == (int)(i * 2654435761u);
  EXPECT(same);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

CASE(captured_work_is_relaunched_a_thousand_times) {
  Device<int> v(2);
  OK(cudaMemset(v.data, 0, 8));
  cudaStream_t a, b;
  cudaEvent_t fork, join;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreate(&b));
  OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, a>>>(v.data, 1);
  OK(cudaEventRecord(fork, a));
  OK(cudaStreamWaitEvent(b, fork, 0));
  add<<<1, 1, 0, b>>>(v.data + 1, 2);
  add<<<1, 1, 0, a>>>(v.data, 3);
  OK(cudaEventRecord(join, b));
  OK(cudaStreamWaitEvent(a, join, 0));
  add<<<1, 1, 0, a>>>(v.data + 1, 4);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(a, &graph));
  size_t nodes = 0, edges = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
  EXPECT(nodes == 4 && edges == 4);
  EXPECT(value(v.data) == 0);
  cudaGraphExec_t exec = ready(graph);
  for (int i = 0; i < 1000; i++) OK(cudaGraphLaunch(exec, i % 2 ? a : b));
  OK(cudaDeviceSynchronize());
  EXPECT(value(v.data) == 4000 && value(v.data + 1) == 6000);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  for (auto event : {fork, join}) OK(cudaEventDestroy(event));
  for (auto stream : {a, b}) OK(cudaStreamDestroy(stream));
}

CASE(updates_change_later_launches_only) {
  Device<int> v(4);
  OK(cudaMemset(v.data, 0, 16));
  auto build = [&](int amount) {
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = kernel(graph, {}, add, v.data, amount);
    kernel(graph, {first}, add, v.data + 1, amount * 10);
    return graph;
  };
  cudaGraph_t one = build(1), two = build(2);
  cudaGraphExec_t exec = ready(one);
  OK(cudaGraphLaunch(exec, 0));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, two, &info));
  OK(cudaGraphLaunch(exec, 0));
  EXPECT(value(v.data) == 3 && value(v.data + 1) == 30);
  // One node, by the handle of the graph it came from.
  cudaGraphNode_t nodes[2];
  size_t count = 2;
  OK(cudaGraphGetNodes(one, nodes, &count));
  int *target = v.data + 2, amount = 7;
  void* arguments[] = {&target, &amount};
  cudaKernelNodeParams params = {};
  params.func = (void*)add;
  params.gridDim = dim3(3);
  params.blockDim = dim3(2);
  params.kernelParams = arguments;
  OK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &params));
  OK(cudaGraphLaunch(exec, 0));
  EXPECT(value(v.data) == 3 && value(v.data + 1) == 50 && value(v.data + 2) == 42);
  OK(cudaGraphNodeSetEnabled(exec, nodes[0], 0));
  OK(cudaGraphLaunch(exec, 0));
  EXPECT(value(v.data + 1) == 70 && value(v.data + 2) == 42);
  cudaGraph_t other;
  OK(cudaGraphCreate(&other, 0));
  kernel(other, {}, add, v.data, 1);
  GIVES(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  OK(cudaGraphExecDestroy(exec));
  for (auto graph : {one, two, other}) OK(cudaGraphDestroy(graph));
}

CASE(clones_and_children_are_copies) {
  Device<int> v(1);
  cudaGraph_t inner, outer, copy;
  OK(cudaGraphCreate(&inner, 0));
  cudaGraphNode_t one = kernel(inner, {}, step, v.data, 1);
  kernel(inner, {one}, step, v.data, 2);
  OK(cudaGraphClone(&copy, inner));
  cudaGraphNode_t found;
  OK(cudaGraphNodeFindInClone(&found, one, copy));
  int *target = v.data, from = 77;
  void* arguments[] = {&target, &from};
  cudaKernelNodeParams params = {};
  params.func = (void*)step;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  OK(cudaGraphKernelNodeSetParams(found, &params));
  OK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t begin = kernel(outer, {}, set, v.data, 1), child, deeper;
  OK(cudaGraphAddChildGraphNode(&child, outer, &begin, 1, inner));
  kernel(outer, {child}, step, v.data, 3);
  // A child in a child.
  cudaGraph_t outermost;
  OK(cudaGraphCreate(&outermost, 0));
  OK(cudaGraphAddChildGraphNode(&deeper, outermost, nullptr, 0, outer));
  kernel(outermost, {deeper}, step, v.data, 4);
  for (auto graph : {inner, outer}) OK(cudaGraphDestroy(graph));
  cudaGraphExec_t exec = ready(outermost), changed = ready(copy);
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(exec, 0));
  EXPECT(value(v.data) == 5);
  OK(cudaGraphLaunch(changed, 0));
  EXPECT(value(v.data) < 0);
  for (auto e : {exec, changed}) OK(cudaGraphExecDestroy(e));
  for (auto graph : {copy, outermost}) OK(cudaGraphDestroy(graph));
}

CASE(memory_nodes_hand_memory_on) {
  int* h;
  OK(cudaMallocHost(&h, 64));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  for (int captured = 0; captured < 2; captured++) {
    cudaGraph_t graph;
    if (captured) {
      int* p;
      OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
      OK(cudaMallocAsync(&p, 4096, stream));
      OK(cudaMemsetAsync(p, 0, 4096, stream));
      add<<<1, 1, 0, stream>>>(p, 41);
      add<<<1, 1, 0, stream>>>(p, 1);
      OK(cudaMemcpyAsync(h, p, 4, cudaMemcpyDeviceToHost, stream));
      OK(cudaFreeAsync(p, stream));
      OK(cudaStreamEndCapture(stream, &graph));
    } else {
      OK(cudaGraphCreate(&graph, 0));
      cudaMemAllocNodeParams params = {};
      params.poolProps.allocType = cudaMemAllocationTypePinned;
      params.poolProps.location.type = cudaMemLocationTypeDevice;
      params.bytesize = 4096;
      cudaGraphNode_t alloc, free;
      OK(cudaGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
      int* p = (int*)params.dptr;
      cudaGraphNode_t first = kernel(graph, {alloc}, set, p, 41), second = kernel(graph, {first}, add, p, 1), copy;
      OK(cudaGraphAddMemcpyNode1D(&copy, graph, &second, 1, h, p, 4, cudaMemcpyDeviceToHost));
      OK(cudaGraphAddMemFreeNode(&free, graph, &copy, 1, p));
    }
    cudaGraphExec_t exec = ready(graph);
    for (int i = 0; i < 5; i++) {
      *h = 0;
      OK(cudaGraphLaunch(exec, stream));
      OK(cudaStreamSynchronize(stream));
      EXPECT(*h == 42);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  }
  OK(cudaStreamDestroy(stream));
  OK(cudaFreeHost(h));
}

CASE(events_of_graphs_order_other_streams) {
  Device<int> v(1);
  OK(cudaMemset(v.data, 0, 4));
  cudaStream_t a, b;
  OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  OK(cudaDeviceSynchronize());
  cudaEvent_t before, after;
  OK(cudaEventCreate(&before));
  OK(cudaEventCreate(&after));
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t wait, record;
  OK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, before));
  cudaGraphNode_t first = kernel(graph, {wait}, step, v.data, 1);
  OK(cudaGraphAddEventRecordNode(&record, graph, &first, 1, after));
  cudaGraphExec_t exec = ready(graph);
  step<<<1, 1, 0, b>>>(v.data, 0);
  OK(cudaEventRecord(before, b));
  OK(cudaGraphLaunch(exec, a));
  OK(cudaStreamWaitEvent(b, after, 0));
  step<<<1, 1, 0, b>>>(v.data, 2);
  OK(cudaStreamSynchronize(b));
  EXPECT(value(v.data) == 3);
  float ms = -1;
  OK(cudaEventElapsedTime(&ms, before, after));
  EXPECT(ms >= 0);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  for (auto event : {before, after}) OK(cudaEventDestroy(event));
  for (auto stream : {a, b}) OK(cudaStreamDestroy(stream));
}

CASE(everything_may_be_destroyed_while_a_launch_is_on_its_way) {
  Device<int> v(1);
  OK(cudaMemset(v.data, 0, 4));
  for (int i = 0; i < 20; i++) {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    cudaHostNodeParams params = {[](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, nullptr};
    cudaGraphNode_t host;
    OK(cudaGraphAddHostNode(&host, graph, nullptr, 0, &params));
    kernel(graph, {host}, add, v.data, 1);
    kernel(graph, {host}, add, v.data, 1);
    cudaGraphExec_t exec = ready(graph);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
  }
  OK(cudaDeviceSynchronize());
  EXPECT(value(v.data) == 40);
}

CASE(threads_capture_and_launch_side_by_side) {
  const int threads = 4, rounds = 10;
  Device<int> v(threads);
  OK(cudaMemset(v.data, 0, threads * sizeof(int)));
  OK(cudaDeviceSynchronize());
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++)
    all.emplace_back([&, t] {
      cudaStream_t stream;
      OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int round = 0; round < rounds; round++) {
        cudaGraph_t graph;
        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < 5; i++) step<<<1, 1, 0, stream>>>(v.data + t, round * 5 + i);
        OK(cudaStreamEndCapture(stream, &graph));
        cudaGraphExec_t exec = ready(graph);
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaGraphExecDestroy(exec));
        OK(cudaGraphDestroy(graph));
      }
      OK(cudaStreamSynchronize(stream));
      OK(cudaStreamDestroy(stream));
    });
  for (auto& thread : all) thread.join();
  std::vector<int> found = v.host();
  for (int t = 0; t < threads; t++) EXPECT(found[t] == rounds * 5);
}

CASE(launches_wait_behind_values_in_memory) {
  Device<int> v(2);
  OK(cudaMemset(v.data, 0, 8));
  volatile unsigned* flag;
  OK(cudaMallocHost((void**)&flag, 64));
  flag[0] = flag[1] = 0;
  OK(cudaDeviceSynchronize());
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // Kernels alone, and kernels with other nodes.
  cudaGraph_t kernels, mixed;
  OK(cudaGraphCreate(&kernels, 0));
  kernel(kernels, {kernel(kernels, {}, step, v.data, 0)}, step, v.data, 1);
  OK(cudaGraphCreate(&mixed, 0));
  cudaGraphNode_t copy, first = kernel(mixed, {}, step, v.data, 2);
  OK(cudaGraphAddMemcpyNode1D(&copy, mixed, &first, 1, v.data + 1, v.data, 4, cudaMemcpyDeviceToDevice));
  kernel(mixed, {copy}, step, v.data + 1, 3);
  cudaGraphExec_t one = ready(kernels), two = ready(mixed);
  EXPECT(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
  OK(cudaGraphLaunch(one, stream));
  OK(cudaGraphLaunch(two, stream));
  EXPECT(cuStreamWriteValue32(stream, (CUdeviceptr)(flag + 1), 7, 0) == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT(flag[1] == 0);
  GIVES(cudaErrorNotReady, cudaStreamQuery(stream));
  flag[0] = 1;
  OK(cudaStreamSynchronize(stream));
  EXPECT(flag[1] == 7);
  EXPECT(value(v.data) == 3 && value(v.data + 1) == 4);
  for (auto exec : {one, two}) OK(cudaGraphExecDestroy(exec));
  for (auto graph : {kernels, mixed}) OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
  OK(cudaFreeHost((void*)flag));
}

CASE(a_node_may_wait_for_what_another_branch_writes) {
  Device<unsigned> v(4);
  OK(cudaMemset(v.data, 0, 16));
  CUcontext context;
  cuCtxGetCurrent(&context);
  auto operation = [&](CUstreamBatchMemOpType type, unsigned* at, unsigned value) {
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof op);
    op.operation = type;
    op.writeValue.address = (CUdeviceptr)at;
    op.writeValue.value = value;
    return op;
  };
  CUstreamBatchMemOpParams wait = operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, v.data, 5);
  CUstreamBatchMemOpParams write[2] = {operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, v.data + 1, 6), operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, v.data, 5)};
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t waits, writes, copy;
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
  params.ctx = context;
  params.count = 1;
  params.paramArray = &wait;
  EXPECT(cuGraphAddBatchMemOpNode(&waits, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  params.count = 2;
  params.paramArray = write;
  EXPECT(cuGraphAddBatchMemOpNode(&writes, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &waits, 1, v.data + 2, v.data + 1, 4, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = ready(graph);
  for (int i = 0; i < 3; i++) {
    OK(cudaMemset(v.data, 0, 16));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    std::vector<unsigned> found = v.host();
    EXPECT(found[0] == 5 && found[1] == 6 && found[2] == 6);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

CASE(one_graph_works_on_two_devices) {
  int devices = 0;
  OK(cudaGetDeviceCount(&devices));
  if (devices < 2) return;
  int *a, *b;
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  OK(cudaMalloc(&a, 4));
  OK(cudaMemset(a, 0, 4));
  OK(cudaStreamCreate(&first));
  OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  OK(cudaSetDevice(1));
  OK(cudaMalloc(&b, 4));
  OK(cudaMemset(b, 0, 4));
  OK(cudaStreamCreate(&second));
  OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  OK(cudaSetDevice(0));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  add<<<1, 1, 0, first>>>(a, 1);
  OK(cudaEventRecord(fork, first));
  OK(cudaSetDevice(1));
  OK(cudaStreamWaitEvent(second, fork, 0));
  OK(cudaMemcpyPeerAsync(b, 1, a, 0, 4, second));
  add<<<1, 1, 0, second>>>(b, 100);
  OK(cudaEventRecord(join, second));
  OK(cudaSetDevice(0));
  OK(cudaStreamWaitEvent(first, join, 0));
  add<<<1, 1, 0, first>>>(a, 10);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(first, &graph));
  cudaGraphExec_t exec = ready(graph);
  for (int i = 0; i < 5; i++) OK(cudaGraphLaunch(exec, first));
  OK(cudaStreamSynchronize(first));
  EXPECT(value(a) == 55 && value(b) == 145);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  for (auto stream : {first, second}) OK(cudaStreamDestroy(stream));
  for (auto event : {fork, join}) OK(cudaEventDestroy(event));
  for (auto p : {a, b}) OK(cudaFree(p));
}

// A conjugate gradient solver as applications write it: the body of the loop is captured once.
static const int N = 256, BLOCK = 64;
__global__ void laplace(const double* x, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2.5 * x[i] - (i ? x[i - 1] : 0) - (i + 1 < N ? x[i + 1] : 0);
}
__global__ void dot(const double* x, const double* y, double* partial) {
  __shared__ double sums[BLOCK];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[threadIdx.x] = x[i] * y[i];
  for (int half = BLOCK / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (!threadIdx.x) partial[blockIdx.x] = sums[0];
}
// scalars: 0 rr, 1 pAp, 2 alpha, 3 beta
__global__ void finish_pap(const double* partial, double* s) {
  s[1] = 0;
  for (int i = 0; i < N / BLOCK; i++) s[1] += partial[i];
  s[2] = s[0] / s[1];
}
__global__ void finish_rr(const double* partial, double* s) {
  double rr = 0;
  for (int i = 0; i < N / BLOCK; i++) rr += partial[i];
  s[3] = rr / s[0];
  s[0] = rr;
}
__global__ void advance(double* x, double* r, const double* p, const double* Ap, const double* s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += s[2] * p[i];
  r[i] -= s[2] * Ap[i];
}
__global__ void direction(double* p, const double* r, const double* s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = r[i] + s[3] * p[i];
}

// CUDA goes on and meets a fault; here the launch is refused. Never may a host thread follow the freed addresses.
CASE(copies_of_freed_memory_are_refused_and_replaced) {
  const int count = 1 << 20;
  std::vector<int> numbers(count);
  for (int i = 0; i < count; i++) numbers[i] = i * 2654435761u;
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int side = 0; side < 6; side++) {
    // Destination or source goes: device memory, memory of a pool, pinned memory.
    auto allocate = [&](int** p) {
      const size_t bytes = count * sizeof(int);
      OK(side / 2 == 0 ? cudaMalloc(p, bytes) : side / 2 == 1 ? cudaMallocAsync(p, bytes, stream) : cudaMallocHost(p, bytes));
      OK(cudaStreamSynchronize(stream));
    };
    auto release = [&](int* p) {
      OK(side / 2 == 0 ? cudaFree(p) : side / 2 == 1 ? cudaFreeAsync(p, stream) : cudaFreeHost(p));
      OK(cudaStreamSynchronize(stream));
    };
    int *goes = nullptr, *next = nullptr;
    Device<int> stays(numbers);
    allocate(&goes);
    auto to = [&](int* changing) { return side % 2 ? changing : stays.data; };
    auto from = [&](int* changing) { return side % 2 ? stays.data : changing; };
    OK(cudaMemcpy(goes, numbers.data(), count * sizeof(int), cudaMemcpyDefault));
    cudaGraph_t graph;
    cudaGraphNode_t copy;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, to(goes), from(goes), count * sizeof(int), cudaMemcpyDefault));
    cudaGraphExec_t exec = ready(graph);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    release(goes);
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    // What takes its place is memory of the same kind, so the node can be pointed there, and its graph can update the other.
    allocate(&next);
    OK(cudaMemcpy(next, numbers.data(), count * sizeof(int), cudaMemcpyDefault));
    OK(cudaMemset(stays.data, side % 2 ? 0x11 : 0, count * sizeof(int)));
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, to(next), from(next), count * sizeof(int), cudaMemcpyDefault));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    std::vector<int> arrived(count);
    OK(cudaMemcpy(arrived.data(), to(next), count * sizeof(int), cudaMemcpyDefault));
    EXPECT(arrived == (side % 2 ? std::vector<int>(count, 0x11111111) : numbers));
    cudaGraph_t fresh;
    OK(cudaGraphCreate(&fresh, 0));
    OK(cudaGraphAddMemcpyNode1D(&copy, fresh, nullptr, 0, to(next), from(next), count * sizeof(int), cudaMemcpyDefault));
    cudaGraphExec_t old = ready(graph);
    cudaGraphExecUpdateResultInfo info;
    OK(cudaGraphExecUpdate(old, fresh, &info));
    OK(cudaGraphLaunch(old, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(old));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(fresh));
    OK(cudaGraphDestroy(graph));
    release(next);
  }
  OK(cudaStreamDestroy(stream));
}

// What stands before the refused node must not have run, whatever refuses and however often. CUDA looks at less of this before it goes on.
CASE(a_launch_that_is_refused_runs_nothing) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  static int calls;
  for (int kind = 0; kind < 6; kind++) {
    Device<int> ran(std::vector<int>{0, 0, 0}), fine(4);
    int *gone, *pooled;
    calls = 0;
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t before = kernel(graph, {}, add, ran.data, 1);
    cudaHostNodeParams call = {};
    call.fn = [](void*) { calls++; };
    cudaGraphNode_t host, filled, refused = nullptr;
    OK(cudaGraphAddHostNode(&host, graph, &before, 1, &call));
    cudaMemsetParams to = {};
    to.dst = ran.data + 1;
    to.value = 9;
    to.elementSize = 4;
    to.width = to.height = 1;
    OK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &to));
    OK(cudaMalloc(&gone, 64));
    OK(cudaMallocAsync(&pooled, 64, stream));
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
    if (kind == 0) OK(cudaGraphAddMemcpyNode1D(&refused, graph, &host, 1, fine.data, gone, 16, cudaMemcpyDefault));
    if (kind == 1 || kind == 2) {
      to.dst = kind == 1 ? gone : pooled;
      OK(cudaGraphAddMemsetNode(&refused, graph, &host, 1, &to));
    }
    if (kind == 3) {
      OK(cudaMallocArray(&array, &ints, 4, 1));
      cudaMemcpy3DParms copy = {};
      copy.dstArray = array;
      copy.srcPtr = make_cudaPitchedPtr(fine.data, 16, 4, 1);
      copy.extent = make_cudaExtent(4, 1, 1);
      copy.kind = cudaMemcpyDeviceToDevice;
      OK(cudaGraphAddMemcpyNode(&refused, graph, &host, 1, &copy));
    }
    if (kind == 4) {
      CUstreamBatchMemOpParams write = {};
      write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
      write.writeValue.address = (CUdeviceptr)gone;
      CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
      cuCtxGetCurrent(&params.ctx);
      params.count = 1;
      params.paramArray = &write;
      EXPECT(cuGraphAddBatchMemOpNode((CUgraphNode*)&refused, (CUgraph)graph, (CUgraphNode*)&host, 1, &params) == CUDA_SUCCESS);
    }
    if (kind == 5) {
      // The graph's own memory, used once more after its end.
      cudaMemAllocNodeParams params = {};
      params.poolProps.allocType = cudaMemAllocationTypePinned;
      params.poolProps.location.type = cudaMemLocationTypeDevice;
      params.bytesize = 64;
      cudaGraphNode_t made, used, freed;
      OK(cudaGraphAddMemAllocNode(&made, graph, &host, 1, &params));
      OK(cudaGraphAddMemcpyNode1D(&used, graph, &made, 1, params.dptr, fine.data, 16, cudaMemcpyDefault));
      OK(cudaGraphAddMemFreeNode(&freed, graph, &used, 1, params.dptr));
      OK(cudaGraphAddMemcpyNode1D(&refused, graph, &freed, 1, fine.data, params.dptr, 16, cudaMemcpyDefault));
    }
    kernel(graph, {refused}, add, ran.data + 2, 1);
    cudaGraphExec_t exec = ready(graph);
    if (kind < 5) {
      OK(cudaGraphLaunch(exec, stream));
      OK(cudaStreamSynchronize(stream));
      EXPECT((ran.host() == std::vector<int>{1, 9, 1}) && calls == 1);
    }
    OK(cudaFree(gone));
    OK(cudaFreeAsync(pooled, stream));
    if (array) OK(cudaFreeArray(array));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemset(ran.data, 0, 3 * sizeof(int)));
    OK(cudaDeviceSynchronize());
    calls = 0;
    for (int again = 0; again < 2; again++) {
      const cudaError_t refusal = cudaGraphLaunch(exec, stream);
      cudaGetLastError();
      EXPECT(refusal == (kind == 3 ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue));
      OK(cudaStreamSynchronize(stream));
      OK(cudaDeviceSynchronize());
      EXPECT((ran.host() == std::vector<int>{0, 0, 0}) && calls == 0);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  }
  OK(cudaStreamDestroy(stream));
}

CASE(a_captured_solver_converges) {
  std::vector<double> b(N), zero(N, 0);
  double rr = 0;
  for (int i = 0; i < N; i++) b[i] = std::sin(0.1 * i) + 0.3, rr += b[i] * b[i];
  Device<double> x(zero), r(b), p(b), Ap(N), partial(N / BLOCK), s(std::vector<double>{rr, 0, 0, 0});
  double* residual;
  OK(cudaMallocHost(&residual, sizeof *residual));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  laplace<<<N / BLOCK, BLOCK, 0, stream>>>(p.data, Ap.data);
  dot<<<N / BLOCK, BLOCK, 0, stream>>>(p.data, Ap.data, partial.data);
  finish_pap<<<1, 1, 0, stream>>>(partial.data, s.data);
  advance<<<N / BLOCK, BLOCK, 0, stream>>>(x.data, r.data, p.data, Ap.data, s.data);
  dot<<<N / BLOCK, BLOCK, 0, stream>>>(r.data, r.data, partial.data);
  finish_rr<<<1, 1, 0, stream>>>(partial.data, s.data);
  direction<<<N / BLOCK, BLOCK, 0, stream>>>(p.data, r.data, s.data);
  OK(cudaMemcpyAsync(residual, s.data, sizeof *residual, cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = ready(graph);
  int iterations = 0;
  do {
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
  } while (++iterations < 100 && *residual > 1e-20 * rr);
  EXPECT(iterations > 5 && iterations < 100);
  std::vector<double> solution = x.host();
  double worst = 0;
  for (int i = 0; i < N; i++) {
    double Ax = 2.5 * solution[i] - (i ? solution[i - 1] : 0) - (i + 1 < N ? solution[i + 1] : 0);
    worst = std::fmax(worst, std::fabs(Ax - b[i]));
  }
  EXPECT(worst < 1e-8);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
  OK(cudaFreeHost(residual));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
