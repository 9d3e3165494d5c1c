// Cooperative launches: the blocks of a grid wait for each other (`grid.sync()`), so all of them must be on the device at once. Every
// round reads what another block wrote in the round before: a barrier that lets one block through early, or a fence that is missing, shows
// in the data.
#include "cases.h"

#include <cooperative_groups.h>
#include <cuda.h>
#include <unistd.h>

namespace cg = cooperative_groups;

// Each round, every thread adds what the thread `step` places on has come to: across all blocks.
__global__ void relax(unsigned* one, unsigned* other, int rounds, unsigned step) {
  cg::grid_group grid = cg::this_grid();
  unsigned count = grid.size(), self = grid.thread_rank();
  for (int round = 0; round < rounds; round++) {
    other[self] = one[self] + one[(self + step) % count] * 3 + round;
    grid.sync();
    unsigned* next = one;
    one = other;
    other = next;
  }
}

static std::vector<unsigned> relaxed(std::vector<unsigned> one, int rounds, unsigned step) {
  std::vector<unsigned> other(one.size());
  for (int round = 0; round < rounds; round++) {
    for (size_t i = 0; i < one.size(); i++) other[i] = one[i] + one[(i + step) % one.size()] * 3 + round;
    one.swap(other);
  }
  return one;
}

struct Relaxation {
  int blocks, threads, rounds;
  unsigned step;
  size_t shared = 0;
  std::vector<unsigned> start;
  Device<unsigned> one, other;
  Relaxation(int blocks, int threads, int rounds)
      : blocks(blocks), threads(threads), rounds(rounds), step(threads + 1), start(ramp(blocks * threads)), one(start),
        other(start.size()) {}
  static std::vector<unsigned> ramp(size_t count) {
    std::vector<unsigned> values(count);
    for (size_t i = 0; i < count; i++) values[i] = i * 2654435761u;
    return values;
  }
  void launch(cudaStream_t stream) {
    void* arguments[] = {&one.data, &other.data, &rounds, &step};
    OK(cudaLaunchCooperativeKernel((void*)relax, dim3(blocks), dim3(threads), arguments, shared, stream));
  }
  void check(int launches) {
    std::vector<unsigned> want = start;
    for (int i = 0; i < launches; i++) want = relaxed(want, rounds, step);
    EXPECT((rounds % 2 ? other : one).host() == want);
  }
};

CASE(the_device_says_so) {
  int can = 0;
  OK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
  EXPECT(can == 1);
}

CASE(blocks_wait_for_each_other_in_every_round) {
  for (int threads : {1, 33, 128, 1024}) {
    Relaxation work(5, threads, threads > 128 ? 3 : 20);
    work.launch(nullptr);
    work.check(1);
  }
}

// So much shared memory that a unit holds one block: the device is full of few threads.
static const size_t ALONE = 40 << 10;

static int most_blocks() {
  int per_unit = 0, units = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, relax, 32, ALONE));
  OK(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0));
  EXPECT(per_unit == 1);
  return per_unit * units;
}

CASE(as_many_blocks_as_the_device_holds_and_not_one_more) {
  Relaxation work(most_blocks(), 32, 1);
  work.shared = ALONE;
  work.launch(nullptr);
  work.check(1);
  void* arguments[] = {&work.one.data, &work.other.data, &work.rounds, &work.step};
  GIVES(cudaErrorCooperativeLaunchTooLarge,
        cudaLaunchCooperativeKernel((void*)relax, dim3(work.blocks + 1), dim3(32), arguments, ALONE, nullptr));
}

CASE(launches_of_several_streams_do_not_share_the_device_by_halves) {
  // Two of them do not fit.
  int blocks = most_blocks() / 2 + 1;
  std::vector<Relaxation*> works;
  std::vector<cudaStream_t> streams(2);
  for (cudaStream_t& stream : streams) {
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    works.push_back(new Relaxation(blocks, 32, 1));
    works.back()->shared = ALONE;
  }
  for (size_t i = 0; i < streams.size(); i++) works[i]->launch(streams[i]);
  for (cudaStream_t stream : streams) OK(cudaStreamSynchronize(stream));
  for (Relaxation* work : works) {
    work->check(1);
    delete work;
  }
  for (cudaStream_t stream : streams) OK(cudaStreamDestroy(stream));
}

__global__ void add(unsigned* values, unsigned count, unsigned what) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += what;
}

CASE(a_stream_keeps_its_order_around_a_cooperative_launch) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Relaxation work(6, 64, 2);
  unsigned count = 6 * 64;
  std::vector<unsigned> want = work.start, got(count);
  for (int turn = 0; turn < 4; turn++) {
    add<<<6, 64, 0, stream>>>(work.one.data, count, turn);
    work.launch(stream);
    if (turn % 3 == 0) OK(cudaMemcpyAsync(got.data(), work.one.data, count * sizeof(unsigned), cudaMemcpyDefault, stream));
    for (unsigned& value : want) value += turn;
    want = relaxed(want, 2, work.step);
  }
  OK(cudaStreamSynchronize(stream));
  EXPECT(work.one.host() == want);
  EXPECT(got == want);
  OK(cudaStreamDestroy(stream));
}

CASE(a_graph_may_hold_cooperative_launches) {
  cudaStream_t stream, side;
  cudaEvent_t fork, join;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  Relaxation left(most_blocks() / 2 + 1, 32, 2), right(left.blocks, 32, 2);
  left.shared = right.shared = ALONE;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  OK(cudaEventRecord(fork, stream));
  OK(cudaStreamWaitEvent(side, fork, 0));
  left.launch(stream);
  right.launch(side);
  OK(cudaEventRecord(join, side));
  OK(cudaStreamWaitEvent(stream, join, 0));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  left.check(1);
  right.check(1);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
  OK(cudaStreamDestroy(side));
}

CASE(the_attribute_of_a_launch_does_the_same) {
  Relaxation work(5, 96, 4);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = work.blocks;
  config.blockDim = work.threads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  OK(cudaLaunchKernelEx(&config, relax, work.one.data, work.other.data, work.rounds, work.step));
  work.check(1);
}

__global__ void valid(int* is_valid) { *is_valid = cg::this_grid().is_valid(); }

CASE(only_cooperative_launches_have_a_grid_to_wait_for) {
  Device<int> is_valid(1);
  valid<<<1, 1>>>(is_valid.data);
  EXPECT(is_valid.host()[0] == 0);
  void* arguments[] = {&is_valid.data};
  OK(cudaLaunchCooperativeKernel((void*)valid, dim3(1), dim3(1), arguments, 0, nullptr));
  EXPECT(is_valid.host()[0] == 1);
}

int main(int argc, char** argv) {
  // What is wrong here shows as blocks that wait for ever.
  alarm(100);
  return run_cases(argc, argv);
}
