// Conditional nodes of graphs: random programs of branches and loops against a host that runs the same, and what applications do with them.
#include "cases.h"

#include <cuda.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

using Handle = cudaGraphConditionalHandle;

__global__ void add(int* to, int amount) { *to += amount; }
__global__ void start(int* counter, int turns, Handle handle) {
  *counter = turns;
  cudaGraphSetConditional(handle, turns > 0);
}
__global__ void turn(int* counter, Handle handle) { cudaGraphSetConditional(handle, --*counter > 0); }
// Only one thread of many decides, in a branch of its own.
__global__ void choose(const int* from, int modulus, Handle handle) {
  if (threadIdx.x == 37) cudaGraphSetConditional(handle, (unsigned)*from % modulus);
}

template <class... A>
static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t after, unsigned threads, void (*function)(A...), A... arguments) {
  void* pointers[] = {&arguments...};
  cudaKernelNodeParams params = {};
  params.func = (void*)function;
  params.gridDim = dim3(1);
  params.blockDim = dim3(threads);
  params.kernelParams = pointers;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddKernelNode(&node, graph, &after, after != nullptr, &params));
  return node;
}

static Handle handle(cudaGraph_t graph, unsigned value = 0, unsigned flags = 0) {
  Handle made = 0;
  OK(cudaGraphConditionalHandleCreate(&made, graph, value, flags));
  return made;
}

// A conditional node; its bodies.
static std::vector<cudaGraph_t> conditional(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t after, Handle handle,
                                            cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  OK(cudaGraphAddNode(node, graph, &after, after != nullptr, &params));
  if (!params.conditional.phGraph_out) {
    fail("no bodies");
    exit(1);
  }
  return {params.conditional.phGraph_out, params.conditional.phGraph_out + size};
}

static cudaGraphExec_t ready(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

// A program of statements over a few variables.
static const int VARIABLES = 8, LOOPS = 64;
struct Statement;
using Program = std::vector<Statement>;
struct Statement {
  enum Kind { Add, Fill, Copy, If, While, Switch, Child } kind;
  int a, b;
  std::vector<Program> bodies;
};

static Program random_program(std::mt19937& random, int depth) {
  auto below = [&](int n) { return (int)(random() % n); };
  Program program(1 + below(4));
  for (Statement& s : program) {
    s = {(Statement::Kind)(depth ? below(7) : below(3)), below(VARIABLES), 1 + below(5), {}};
    const int bodies = s.kind == Statement::If ? 1 + below(2) : s.kind == Statement::Switch ? 1 + below(3) : s.kind >= Statement::While;
    for (int i = 0; i < bodies; i++) s.bodies.push_back(random_program(random, depth - 1));
    // A child graph may hold no conditional nodes.
    if (s.kind == Statement::Child) s.bodies = {random_program(random, 0)};
  }
  return program;
}

static void run(const Program& program, int* v) {
  for (const Statement& s : program) {
    const unsigned chosen = (unsigned)v[s.a] % (s.b + 1);
    switch (s.kind) {
      case Statement::Add: v[s.a] += s.b; break;
      case Statement::Fill: v[s.a] = s.b; break;
      case Statement::Copy: v[s.a] = v[s.b]; break;
      case Statement::If:
        if (chosen) run(s.bodies[0], v);
        else if (s.bodies.size() == 2) run(s.bodies[1], v);
        break;
      case Statement::While:
        for (int i = 0; i < s.b - 1; i++) run(s.bodies[0], v);
        break;
      case Statement::Switch:
        if (chosen < s.bodies.size()) run(s.bodies[chosen], v);
        break;
      case Statement::Child: run(s.bodies[0], v); break;
    }
  }
}

// Handles belong to the graph that is launched, or to the body: that makes no difference.
static void build(const Program& program, cudaGraph_t graph, cudaGraph_t top, int* v, int& loops) {
  cudaGraphNode_t last = nullptr;
  for (const Statement& s : program) {
    cudaGraphNode_t node = nullptr;
    cudaMemsetParams fill = {};
    switch (s.kind) {
      case Statement::Add: node = kernel(graph, last, 1, add, v + s.a, s.b); break;
      case Statement::Fill:
        fill.dst = v + s.a;
        fill.value = s.b;
        fill.elementSize = 4;
        fill.width = fill.height = 1;
        OK(cudaGraphAddMemsetNode(&node, graph, &last, last != nullptr, &fill));
        break;
      case Statement::Copy:
        OK(cudaGraphAddMemcpyNode1D(&node, graph, &last, last != nullptr, v + s.a, v + s.b, 4, cudaMemcpyDeviceToDevice));
        break;
      case Statement::If:
      case Statement::Switch: {
        const Handle h = handle(s.a % 2 ? graph : top);
        last = kernel(graph, last, 64, choose, (const int*)(v + s.a), s.b + 1, h);
        const auto type = s.kind == Statement::If ? cudaGraphCondTypeIf : cudaGraphCondTypeSwitch;
        const auto bodies = conditional(&node, graph, last, h, type, s.bodies.size());
        for (size_t i = 0; i < bodies.size(); i++) build(s.bodies[i], bodies[i], top, v, loops);
        break;
      }
      case Statement::While: {
        const Handle h = handle(s.a % 2 ? graph : top);
        int* counter = v + VARIABLES + loops++ % LOOPS;
        last = kernel(graph, last, 1, start, counter, s.b - 1, h);
        cudaGraph_t body = conditional(&node, graph, last, h, cudaGraphCondTypeWhile, 1)[0];
        build(s.bodies[0], body, top, v, loops);
        // Behind whatever the body ends with.
        cudaGraphNode_t nodes[64];
        size_t count = 64;
        OK(cudaGraphGetNodes(body, nodes, &count));
        kernel(body, nodes[count - 1], 1, turn, counter, h);
        break;
      }
      case Statement::Child: {
        cudaGraph_t child;
        OK(cudaGraphCreate(&child, 0));
        build(s.bodies[0], child, child, v, loops);
        OK(cudaGraphAddChildGraphNode(&node, graph, &last, last != nullptr, child));
        OK(cudaGraphDestroy(child));
        break;
      }
    }
    last = node;
  }
}

CASE(random_programs_do_what_the_host_does) {
  std::mt19937 random(20261201);
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 60; round++) {
    const Program program = random_program(random, 1 + round % 3);
    std::vector<int> values(VARIABLES + LOOPS);
    for (int i = 0; i < VARIABLES; i++) values[i] = random() % 100;
    Device<int> v(values);
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    int loops = 0;
    build(program, graph, graph, v.data, loops);
    if (loops > LOOPS) {
      OK(cudaGraphDestroy(graph));
      continue;
    }
    cudaGraphExec_t exec = ready(graph);
    for (int launch = 0; launch < 3; launch++) {
      OK(cudaGraphLaunch(exec, stream));
      run(program, values.data());
    }
    // A copy behind it in its stream.
    std::vector<int> found(VARIABLES);
    OK(cudaMemcpyAsync(found.data(), v.data, VARIABLES * sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < VARIABLES; i++)
      if (found[i] != values[i]) fail("round %d: variable %d is %d, not %d", round, i, found[i], values[i]);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  }
  OK(cudaStreamDestroy(stream));
}

// x of x*x = a by Newton's steps, until the device finds the result good enough: the host never looks.
__global__ void newton(double* x, const double* a, Handle more, int* steps) {
  const double next = 0.5 * (*x + *a / *x);
  cudaGraphSetConditional(more, fabs(next - *x) > 1e-14 * next);
  *x = next;
  ++*steps;
}

CASE(a_captured_body_repeats_until_the_device_is_content) {
  const double numbers[] = {2, 1e6, 1e-4, 123456789};
  Device<double> x(1), a(1);
  Device<int> steps(std::vector<int>{0});
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph, same;
  cudaGraphNode_t node;
  OK(cudaGraphCreate(&graph, 0));
  const Handle more = handle(graph, 1, cudaGraphCondAssignDefault);
  cudaGraph_t body = conditional(&node, graph, nullptr, more, cudaGraphCondTypeWhile, 1)[0];
  OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  newton<<<1, 1, 0, stream>>>(x.data, a.data, more, steps.data);
  OK(cudaStreamEndCapture(stream, &same));
  EXPECT(same == body);
  cudaGraphExec_t exec = ready(graph);
  for (double number : numbers) {
    const double first = 1;
    OK(cudaMemcpyAsync(a.data, &number, sizeof number, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(x.data, &first, sizeof first, cudaMemcpyHostToDevice, stream));
    OK(cudaMemsetAsync(steps.data, 0, sizeof(int), stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    int expected = 0;
    for (double now = 1, next;; now = next) {
      next = 0.5 * (now + number / now);
      expected++;
      if (!(std::fabs(next - now) > 1e-14 * next)) break;
    }
    EXPECT(std::fabs(x.host()[0] - std::sqrt(number)) < 1e-12 * std::sqrt(number));
    EXPECT(std::abs(steps.host()[0] - expected) <= 1 && steps.host()[0] > 3);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

CASE(other_streams_and_blocked_host_functions_hold_nothing_up) {
  Device<int> v(std::vector<int>{0, 0, 0, 0});
  cudaStream_t one, two, blocked;
  for (cudaStream_t* s : {&one, &two, &blocked}) OK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
  cudaGraph_t graph;
  cudaGraphNode_t node;
  OK(cudaGraphCreate(&graph, 0));
  const Handle h = handle(graph);
  cudaGraphNode_t first = kernel(graph, nullptr, 1, start, v.data, 50, h);
  cudaGraph_t body = conditional(&node, graph, first, h, cudaGraphCondTypeWhile, 1)[0];
  kernel(body, kernel(body, nullptr, 1, add, v.data + 1, 1), 1, turn, v.data, h);
  kernel(graph, node, 1, add, v.data + 2, 1);
  // A branch beside the node.
  kernel(graph, first, 1, add, v.data + 3, 1);
  cudaGraphExec_t exec = ready(graph);
  // A host function that waits for the graph's end, as an application's own thread would tell it.
  static std::atomic<bool> over;
  over = false;
  OK(cudaLaunchHostFunc(blocked, [](void*) { while (!over) std::this_thread::yield(); }, nullptr));
  for (int i = 0; i < 4; i++) OK(cudaGraphLaunch(exec, i % 2 ? two : one));
  cudaEvent_t end;
  OK(cudaEventCreate(&end));
  OK(cudaEventRecord(end, two));
  OK(cudaStreamWaitEvent(one, end, 0));
  int seen = 0;
  OK(cudaMemcpyAsync(&seen, v.data + 1, sizeof seen, cudaMemcpyDeviceToHost, one));
  EXPECT(seen == 200);
  OK(cudaStreamSynchronize(one));
  over = true;
  OK(cudaStreamSynchronize(blocked));
  EXPECT((v.host() == std::vector<int>{0, 200, 4, 4}));
  OK(cudaEventDestroy(end));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  for (cudaStream_t s : {one, two, blocked}) OK(cudaStreamDestroy(s));
}

CASE(everything_may_be_destroyed_while_it_runs) {
  for (int round = 0; round < 20; round++) {
    Device<int> v(std::vector<int>{0, 0});
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t graph;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&graph, 0));
    const Handle h = handle(graph);
    cudaGraphNode_t first = kernel(graph, nullptr, 1, start, v.data, 30, h);
    cudaGraph_t body = conditional(&node, graph, first, h, cudaGraphCondTypeWhile, 1)[0];
    kernel(body, kernel(body, nullptr, 1, add, v.data + 1, 1), 1, turn, v.data, h);
    cudaGraphExec_t exec = ready(graph);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    // Nobody else gets the handle while its kernels may still set a value. The copy waits for no other stream.
    cudaGraph_t other;
    OK(cudaGraphCreate(&other, 0));
    if (handle(other) == h) EXPECT((v.host() == std::vector<int>{0, 30}));
    OK(cudaDeviceSynchronize());
    EXPECT((v.host() == std::vector<int>{0, 30}));
    OK(cudaGraphDestroy(other));
  }
}

CASE(updates_reach_bodies_and_defaults) {
  Device<int> v(std::vector<int>{0, 0, 0});
  auto make = [&](unsigned value, int* to, cudaGraphNode_t* inside) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&graph, 0));
    cudaGraph_t body = conditional(&node, graph, nullptr, handle(graph, value, cudaGraphCondAssignDefault), cudaGraphCondTypeIf, 1)[0];
    *inside = kernel(body, nullptr, 1, add, to, 1);
    return graph;
  };
  cudaGraphNode_t inside, unused;
  cudaGraph_t graph = make(1, v.data, &inside);
  cudaGraphExec_t exec = ready(graph), again = nullptr;
  cudaGraph_t clone;
  GIVES(cudaErrorNotSupported, cudaGraphInstantiate(&again, graph, 0));
  GIVES(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
  OK(cudaGraphLaunch(exec, 0));
  // The node in the body does something else now.
  int* second = v.data + 1;
  int amount = 10;
  void* arguments[] = {&second, &amount};
  cudaKernelNodeParams params = {};
  params.func = (void*)add;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  OK(cudaGraphExecKernelNodeSetParams(exec, inside, &params));
  OK(cudaGraphLaunch(exec, 0));
  OK(cudaDeviceSynchronize());
  EXPECT((v.host() == std::vector<int>{1, 10, 0}));
  cudaGraphExecUpdateResultInfo info;
  for (unsigned value : {1u, 0u}) {
    cudaGraph_t other = make(value, v.data + 2, &unused);
    OK(cudaGraphExecUpdate(exec, other, &info));
    OK(cudaGraphDestroy(other));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    EXPECT((v.host() == std::vector<int>{1, 10, 1}));
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

// A launch that would be refused in a body runs nothing, and what is freed in a graph cannot be filled in a body.
CASE(a_launch_whose_body_would_be_refused_runs_nothing) {
  Device<int> v(std::vector<int>{0});
  int* gone;
  OK(cudaMalloc(&gone, 64));
  cudaGraph_t graph;
  cudaGraphNode_t node, fill;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = kernel(graph, nullptr, 1, add, v.data, 1);
  cudaGraph_t body = conditional(&node, graph, first, handle(graph, 0, cudaGraphCondAssignDefault), cudaGraphCondTypeIf, 1)[0];
  cudaMemsetParams to = {};
  to.dst = gone;
  to.elementSize = 4;
  to.width = to.height = 1;
  OK(cudaGraphAddMemsetNode(&fill, body, nullptr, 0, &to));
  cudaGraphExec_t exec = ready(graph);
  OK(cudaGraphLaunch(exec, 0));
  OK(cudaFree(gone));
  GIVES(cudaErrorInvalidValue, cudaGraphLaunch(exec, 0));
  OK(cudaDeviceSynchronize());
  EXPECT(v.host()[0] == 1);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
