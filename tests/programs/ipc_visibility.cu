// Device memory of another process, when each of the two processes sees a GPU of its own, as under `srun --gpus-per-task=1`.
//
// The importer works on the exporter's block in every way there is (copies up, down, to and from its own memory and within the
// block, of many sizes, pitched ones, fills, a kernel) beside a model in host memory. After each step it checks the whole
// block itself and lets the exporter do the same.
//
// Exit status 0: both processes found every byte right, for every way of hiding the other's GPU.
#include <cuda_runtime.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

static const size_t kBytes = (3 << 20) + 4099;
// A step may take this long before the other process counts as hung; all steps together take seconds.
static const int kPatience = 60 * 1000;

#define CHECK(call)                                                                                            \
  do {                                                                                                         \
    cudaError_t status = (call);                                                                               \
    if (status != cudaSuccess) {                                                                               \
      printf("%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call, cudaGetErrorString(status), status);           \
      exit(1);                                                                                                 \
    }                                                                                                          \
  } while (0)

static uint8_t pattern(size_t i, unsigned seed) { return (uint8_t)((i * 2654435761u + seed * 0x9e3779b9u) >> 13); }

static void send_all(int to, const void* data, size_t bytes) {
  for (const char* at = (const char*)data; bytes;) {
    ssize_t n = write(to, at, bytes);
    if (n <= 0) exit(1);
    at += n, bytes -= n;
  }
}

static void receive_all(int from, void* data, size_t bytes) {
  for (char* at = (char*)data; bytes;) {
    pollfd wait = {from, POLLIN, 0};
    if (poll(&wait, 1, kPatience) != 1) {
      printf("the other process does not answer\n");
      exit(1);
    }
    ssize_t n = read(from, at, bytes);
    if (n <= 0) exit(1);
    at += n, bytes -= n;
  }
}

static size_t differences(const std::vector<uint8_t>& found, const std::vector<uint8_t>& wanted) {
  size_t count = 0;
  for (size_t i = 0; i < wanted.size(); i++) count += found[i] != wanted[i];
  return count;
}

// Owns the block. Each message is what the block must hold; the answer is how many bytes are wrong.
static int exporter(int peer) {
  std::vector<uint8_t> model(kBytes), found(kBytes);
  for (size_t i = 0; i < kBytes; i++) model[i] = pattern(i, 1);
  char* block;
  CHECK(cudaMalloc(&block, kBytes));
  CHECK(cudaMemcpy(block, model.data(), kBytes, cudaMemcpyHostToDevice));
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, block));
  send_all(peer, &handle, sizeof handle);
  for (char more; receive_all(peer, &more, 1), more;) {
    receive_all(peer, model.data(), kBytes);
    CHECK(cudaMemcpy(found.data(), block, kBytes, cudaMemcpyDeviceToHost));
    size_t wrong = differences(found, model);
    send_all(peer, &wrong, sizeof wrong);
  }
  CHECK(cudaFree(block));
  return 0;
}

__global__ void invert(uint8_t* bytes, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) bytes[i] = ~bytes[i];
}

static int importer(int peer) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices != 1) {
    printf("%d devices are visible\n", devices);
    return 1;
  }
  cudaIpcMemHandle_t handle;
  receive_all(peer, &handle, sizeof handle);
  char *block, *own;
  CHECK(cudaIpcOpenMemHandle((void**)&block, handle, cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaMalloc(&own, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<uint8_t> model(kBytes), mine(kBytes), found(kBytes);
  for (size_t i = 0; i < kBytes; i++) model[i] = pattern(i, 1), mine[i] = pattern(i, 2);
  CHECK(cudaMemcpy(own, mine.data(), kBytes, cudaMemcpyHostToDevice));

  size_t failures = 0;
  auto step = [&](const char* name, const std::function<void()>& work) {
    work();
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(found.data(), block, kBytes, cudaMemcpyDeviceToHost));
    size_t here = differences(found, model), there = 0;
    CHECK(cudaMemcpy(found.data(), own, kBytes, cudaMemcpyDeviceToHost));
    here += differences(found, mine);
    char more = 1;
    send_all(peer, &more, 1);
    send_all(peer, model.data(), kBytes);
    receive_all(peer, &there, sizeof there);
    if (here || there) printf("%s: %zu bytes wrong for the importer, %zu for the exporter\n", name, here, there);
    failures += here + there;
  };

  step("as exported", [] {});
  for (size_t size : {size_t(1), size_t(4095), size_t(4096), size_t(4097), size_t(65536), size_t((2 << 20) + 5)}) {
    const size_t at = 4099, from = 77;
    step("copy to the block", [&] {
      CHECK(cudaMemcpyAsync(block + at, own + from, size, cudaMemcpyDeviceToDevice, stream));
      memcpy(&model[at], &mine[from], size);
    });
    step("copy from the block", [&] {
      CHECK(cudaMemcpyAsync(own + at + 1, block + from, size, cudaMemcpyDeviceToDevice, stream));
      memcpy(&mine[at + 1], &model[from], size);
    });
    step("copy from host memory", [&] {
      for (size_t i = 0; i < size; i++) model[i + 3] = pattern(i, size);
      CHECK(cudaMemcpyAsync(block + 3, &model[3], size, cudaMemcpyHostToDevice, stream));
    });
    step("fill", [&] {
      CHECK(cudaMemsetAsync(block + 9, 0x5a, size, stream));
      memset(&model[9], 0x5a, size);
    });
  }
  step("copy within the block", [&] {
    CHECK(cudaMemcpyAsync(block + (2 << 20), block + 4099, 1 << 20, cudaMemcpyDeviceToDevice, stream));
    memcpy(&model[2 << 20], &model[4099], 1 << 20);
  });
  step("pitched copy to the block", [&] {
    CHECK(cudaMemcpy2DAsync(block + 5, 5000, own + 6, 4200, 4100, 200, cudaMemcpyDeviceToDevice, stream));
    for (int row = 0; row < 200; row++) memcpy(&model[5 + row * 5000], &mine[6 + row * 4200], 4100);
  });
  step("kernel on the block", [&] {
    invert<<<64, 256, 0, stream>>>((uint8_t*)block, kBytes);
    CHECK(cudaGetLastError());
    for (uint8_t& byte : model) byte = ~byte;
  });
  char more = 0;
  send_all(peer, &more, 1);
  CHECK(cudaIpcCloseMemHandle(block));
  return failures != 0;
}

// Starts this program again as one of the two, with the GPU chosen by the named variables.
static pid_t start(const char* self, const char* role, const int* sockets, const char* gpu, const char* const* variables) {
  pid_t child = fork();
  if (child) return child;
  close(sockets[1]);
  for (; *variables; variables++) setenv(*variables, gpu, 1);
  char number[16];
  snprintf(number, sizeof number, "%d", sockets[0]);
  execl(self, self, role, number, (char*)nullptr);
  _exit(127);
}

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc == 3) {
    int peer = atoi(argv[2]);
    return strcmp(argv[1], "export") ? importer(peer) : exporter(peer);
  }
  const char* const ways[][3] = {
      {"ROCR_VISIBLE_DEVICES"},
      {"ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
      {"CUDA_VISIBLE_DEVICES"},
  };
  int failures = 0, runs = 0;
  for (auto& way : ways) {
    // Both directions: the hidden GPU's number is above, then below, the visible one's.
    for (int exporting = 0; exporting < 2; exporting++, runs++) {
      int pair[2], status;
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
      const char* const gpus[] = {"0", "1"};
      start("/proc/self/exe", "export", pair, gpus[exporting], way);
      const int other[] = {pair[1], pair[0]};
      pid_t child = start("/proc/self/exe", "import", other, gpus[1 - exporting], way);
      close(pair[0]);
      close(pair[1]);
      for (int ended = 0; ended < 2; ended++) {
        pid_t which = wait(&status);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
          printf("%s%s%s, GPU %d exports: the %s failed\n", way[0], way[1] ? " and " : "", way[1] ? way[1] : "", exporting,
                 which == child ? "importer" : "exporter");
          failures++;
        }
      }
    }
  }
  printf("ipc_visibility: %d pairs of processes, %d failures: %s\n", runs, failures, failures ? "FAILED" : "ok");
  return failures != 0;
}
