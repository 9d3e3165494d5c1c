// What broke others, as cases named after the public report: repository and number. Each checks data.
//
// Cases with a second process start this program again with `--peer NAME`; the two talk over a socket pair on descriptor 3.
#include "cases.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <limits>

#define DRIVER(call)                                                                      \
  do {                                                                                    \
    CUresult status_ = (call);                                                            \
    if (status_ != CUDA_SUCCESS) fail("line %d: %s: %d", __LINE__, #call, (int)status_); \
  } while (0)

extern char** environ;

static __global__ void fill(unsigned char* bytes, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    bytes[i] = (unsigned char)(i * 31 + seed + (i >> 8));
}
static unsigned char filled(size_t i, unsigned seed) { return (unsigned char)(i * 31 + seed + (i >> 8)); }

// Ends the program when a case hangs: several of these reports are of hangs.
struct Watchdog {
  explicit Watchdog(unsigned seconds) { alarm(seconds); }
  ~Watchdog() { alarm(0); }
};

// The other process of a case.
struct Peer {
  int socket = -1;
  pid_t pid = -1;
  explicit Peer(const char* name) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
      fail("socketpair: %s", strerror(errno));
      return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    const char* arguments[] = {"known_issues", "--peer", name, nullptr};
    int status = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, (char**)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    socket = ends[0];
    if (status) fail("posix_spawn: %s", strerror(status));
  }
  Peer(const Peer&) = delete;
  // Waits for the peer and takes over its verdict.
  ~Peer() {
    close(socket);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) fail("the peer failed (status %#x)", status);
  }
  template <typename T>
  void send(const T& value) const {
    if (write(socket, &value, sizeof value) != (ssize_t)sizeof value) fail("send: %s", strerror(errno));
  }
  template <typename T>
  T receive() const {
    T value{};
    if (recv(socket, &value, sizeof value, MSG_WAITALL) != (ssize_t)sizeof value) fail("the peer went away");
    return value;
  }
};
template <typename T>
static T peer_receive() {
  T value{};
  if (recv(3, &value, sizeof value, MSG_WAITALL) != (ssize_t)sizeof value) fail("the other side went away");
  return value;
}
template <typename T>
static void peer_send(const T& value) {
  if (write(3, &value, sizeof value) != (ssize_t)sizeof value) fail("send: %s", strerror(errno));
}

// A device pointer is device memory to CUDA and to HSA, and nothing that the kernel could read for a neighbour.
CASE(scale_validation_66) {
  struct Info {  // hsa_amd_pointer_info_t
    uint32_t size;
    int type;
    void *agent_base, *host_base;
    size_t bytes;
    void* user;
    uint64_t owner;
    uint32_t flags;
    uint64_t more[4];
  } info = {};
  Device<unsigned char> block(1 << 20);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, block.data + 4097));
  EXPECT(attributes.type == cudaMemoryTypeDevice);
  void* hsa = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_NOLOAD);
  EXPECT(hsa != nullptr);
  auto pointer_info = hsa ? (int (*)(const void*, Info*, void*, void*, void*))dlsym(hsa, "hsa_amd_pointer_info") : nullptr;
  EXPECT(pointer_info != nullptr);
  if (pointer_info) {
    info.size = offsetof(Info, more);
    EXPECT(pointer_info(block.data + 4097, &info, nullptr, nullptr, nullptr) == 0);
    EXPECT(info.type == 1);  // HSA_EXT_POINTER_TYPE_HSA
    EXPECT(info.agent_base == block.data);
  }
  unsigned char byte = 0;
  iovec mine = {&byte, 1}, theirs = {block.data, 1};
  EXPECT(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == -1 && errno == EFAULT);
  // The same report: no provider of `cudaFree@libcudart.so.12`.
  for (const char* name : {"cudaMalloc", "cudaFree", "cudaMemcpy", "cudaPointerGetAttributes", "cudaIpcGetMemHandle"})
    EXPECT(dlvsym(RTLD_DEFAULT, name, "libcudart.so.12") != nullptr);
}

// Views into one block: each has the handle of the block, and the offset tells them apart.
struct View {
  cudaIpcMemHandle_t handle;
  size_t offset;
};
CASE(Mooncake_3546) {
  const size_t view = 1 << 20;
  Device<unsigned char> pool(4 * view);
  for (int i = 0; i < 4; i++) OK(cudaMemset(pool.data + i * view, i + 1, view));
  OK(cudaDeviceSynchronize());
  Peer peer("Mooncake_3546");
  for (int i = 0; i < 4; i++) {
    View one;
    CUdeviceptr base;
    size_t size;
    OK(cudaIpcGetMemHandle(&one.handle, pool.data + i * view));
    DRIVER(cuMemGetAddressRange(&base, &size, (CUdeviceptr)(pool.data + i * view)));
    EXPECT(base == (CUdeviceptr)pool.data && size == 4 * view);
    one.offset = (CUdeviceptr)(pool.data + i * view) - base;
    peer.send(one);
  }
  peer.receive<int>();
}
static void peer_Mooncake_3546() {
  for (int i = 0; i < 4; i++) {
    View one = peer_receive<View>();
    char* base = nullptr;
    std::vector<unsigned char> bytes(1 << 20);
    OK(cudaIpcOpenMemHandle((void**)&base, one.handle, cudaIpcMemLazyEnablePeerAccess));
    OK(cudaMemcpy(bytes.data(), base + one.offset, bytes.size(), cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (unsigned char byte : bytes) wrong += byte != i + 1;
    if (wrong) fail("view %d: %zu bytes wrong, the first is %d", i, wrong, bytes[0]);
    OK(cudaIpcCloseMemHandle(base));
  }
  peer_send(1);
}

// Any size can be exported: not only multiples of a page.
static const size_t hip_2257_sizes[] = {1, 255, 4095, 4097, 2267136, 2097153, 16764871};
CASE(ROCm_hip_2257) {
  Peer peer("ROCm_hip_2257");
  for (size_t size : hip_2257_sizes) {
    Device<unsigned char> block(size);
    fill<<<64, 256>>>(block.data, size, (unsigned)size);
    OK(cudaDeviceSynchronize());
    cudaIpcMemHandle_t handle;
    OK(cudaIpcGetMemHandle(&handle, block.data));
    peer.send(handle);
    peer.receive<int>();
  }
}
static void peer_ROCm_hip_2257() {
  for (size_t size : hip_2257_sizes) {
    auto handle = peer_receive<cudaIpcMemHandle_t>();
    unsigned char* block = nullptr;
    OK(cudaIpcOpenMemHandle((void**)&block, handle, cudaIpcMemLazyEnablePeerAccess));
    std::vector<unsigned char> bytes(size);
    OK(cudaMemcpy(bytes.data(), block, size, cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < size; i++) wrong += bytes[i] != filled(i, (unsigned)size);
    if (wrong) fail("size %zu: %zu bytes wrong", size, wrong);
    OK(cudaIpcCloseMemHandle(block));
    peer_send(1);
  }
}

// GEQ compares cyclically: 2 is four steps past 2^64 - 2.
CASE(rocm_clr_streamOpsWait) {
  Watchdog watchdog(60);
  Device<uint64_t> words(std::vector<uint64_t>{2, 0, 2, 0});
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DRIVER(cuStreamWaitValue64(stream, (CUdeviceptr)words.data, 0xFFFFFFFFFFFFFFFEull, CU_STREAM_WAIT_VALUE_GEQ));
  DRIVER(cuStreamWriteValue64(stream, (CUdeviceptr)(words.data + 1), 77, 0));
  DRIVER(cuStreamWaitValue32(stream, (CUdeviceptr)(words.data + 2), 0xFFFFFFFEu, CU_STREAM_WAIT_VALUE_GEQ));
  DRIVER(cuStreamWriteValue32(stream, (CUdeviceptr)(words.data + 3), 78, 0));
  OK(cudaStreamSynchronize(stream));
  EXPECT(words.host()[1] == 77 && words.host()[3] == 78);
  OK(cudaStreamDestroy(stream));
}

// A write in one stream satisfies a wait in another, whichever was enqueued first.
CASE(rocm_systems_11605) {
  Watchdog watchdog(60);
  for (unsigned how : {(unsigned)CU_STREAM_WAIT_VALUE_GEQ, (unsigned)CU_STREAM_WAIT_VALUE_EQ})
    for (bool wait_first : {true, false}) {
      Device<uint64_t> flag(std::vector<uint64_t>{0, 0});
      cudaStream_t a, b;
      OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
      OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
      auto wait = [&] {
        DRIVER(cuStreamWaitValue64(a, (CUdeviceptr)flag.data, 9, how));
        fill<<<1, 8, 0, a>>>((unsigned char*)(flag.data + 1), 8, 5);
      };
      if (wait_first) wait();
      if (wait_first) GIVES(cudaErrorNotReady, cudaStreamQuery(a));
      DRIVER(cuStreamWriteValue64(b, (CUdeviceptr)flag.data, 9, 0));
      if (!wait_first) wait();
      OK(cudaStreamSynchronize(a));
      OK(cudaStreamSynchronize(b));
      auto words = flag.host();
      EXPECT(((unsigned char*)&words[1])[3] == filled(3, 5));
      OK(cudaStreamDestroy(a));
      OK(cudaStreamDestroy(b));
    }
}

// Three growing reservations: each tail is mapped and opened by itself.
CASE(rocm_systems_6977) {
  int vmm = 0;
  DRIVER(cuDeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  if (!vmm) return (void)printf("    (this ROCr has no virtual memory management)\n");
  OK(cudaFree(nullptr));
  const size_t granule = 2 << 20, granules = 4;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr base[3];
  for (CUdeviceptr& one : base) DRIVER(cuMemAddressReserve(&one, granules * granule, 0, 0, 0));
  for (size_t tail = 0; tail < granules; tail++)
    for (CUdeviceptr one : base) {
      CUmemGenericAllocationHandle handle;
      DRIVER(cuMemCreate(&handle, granule, &properties, 0));
      DRIVER(cuMemMap(one + tail * granule, granule, 0, handle, 0));
      DRIVER(cuMemSetAccess(one + tail * granule, granule, &access, 1));
      DRIVER(cuMemRelease(handle));
      fill<<<64, 256>>>((unsigned char*)one + tail * granule, granule, (unsigned)(tail + 1));
    }
  OK(cudaDeviceSynchronize());
  std::vector<unsigned char> bytes(granules * granule);
  for (CUdeviceptr one : base) {
    DRIVER(cuMemcpyDtoH(bytes.data(), one, bytes.size()));
    size_t wrong = 0;
    for (size_t i = 0; i < bytes.size(); i++) wrong += bytes[i] != filled(i % granule, (unsigned)(i / granule + 1));
    if (wrong) fail("%zu bytes wrong", wrong);
    DRIVER(cuMemUnmap(one, granules * granule));
    DRIVER(cuMemAddressFree(one, granules * granule));
  }
}

// An IPC event is recorded and waited for more often than any ring of 32 entries holds; never too early.
struct Shared {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};
static const int rounds_11511 = 100;
CASE(rocm_systems_11511) {
  Watchdog watchdog(120);
  Device<unsigned> counter(std::vector<unsigned>(16, 0));
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  Shared shared;
  OK(cudaIpcGetMemHandle(&shared.memory, counter.data));
  OK(cudaIpcGetEventHandle(&shared.event, event));
  Peer peer("rocm_systems_11511");
  peer.send(shared);
  for (int round = 1; round <= rounds_11511; round++) {
    OK(cudaMemsetAsync(counter.data, round, sizeof(unsigned)));
    OK(cudaEventRecord(event, 0));
    peer.send(round);
    peer.receive<int>();
  }
}
static void peer_rocm_systems_11511() {
  Shared shared = peer_receive<Shared>();
  unsigned* counter = nullptr;
  cudaEvent_t event;
  OK(cudaIpcOpenMemHandle((void**)&counter, shared.memory, cudaIpcMemLazyEnablePeerAccess));
  OK(cudaIpcOpenEventHandle(&event, shared.event));
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 1; round <= rounds_11511; round++) {
    EXPECT(peer_receive<int>() == round);
    unsigned value = 0;
    OK(cudaStreamWaitEvent(stream, event, 0));
    OK(cudaMemcpyAsync(&value, counter, sizeof value, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    if (value != round * 0x01010101u) fail("round %d: read %#x", round, value);
    peer_send(round);
  }
  OK(cudaEventDestroy(event));
  OK(cudaIpcCloseMemHandle(counter));
}

// A block at the address of a freed one is another block: caches of IPC handles see it by its id.
CASE(mpich_7304) {
  unsigned long long first_id = 0, second_id = 0;
  char *first = nullptr, *second = nullptr;
  OK(cudaMalloc((void**)&first, 1 << 20));
  cudaIpcMemHandle_t first_handle, second_handle;
  OK(cudaIpcGetMemHandle(&first_handle, first));
  DRIVER(cuPointerGetAttribute(&first_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, (CUdeviceptr)first));
  OK(cudaFree(first));
  OK(cudaMalloc((void**)&second, 1 << 20));
  OK(cudaIpcGetMemHandle(&second_handle, second));
  DRIVER(cuPointerGetAttribute(&second_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, (CUdeviceptr)second));
  if (second != first) printf("    (the address was not used again)\n");
  EXPECT(first_id != second_id);
  OK(cudaMemset(second, 0x5c, 1 << 20));
  OK(cudaDeviceSynchronize());
  Peer peer("mpich_7304");
  peer.send(first_handle);
  peer.send(second_handle);
  peer.receive<int>();
  OK(cudaFree(second));
}
static void peer_mpich_7304() {
  auto stale = peer_receive<cudaIpcMemHandle_t>();
  auto live = peer_receive<cudaIpcMemHandle_t>();
  void* block = nullptr;
  unsigned char byte = 0;
  OK(cudaIpcOpenMemHandle(&block, live, cudaIpcMemLazyEnablePeerAccess));
  OK(cudaMemcpy(&byte, (char*)block + 70000, 1, cudaMemcpyDeviceToHost));
  EXPECT(byte == 0x5c);
  // A handle of freed memory is refused or leads to that memory, which is gone; it never leads into the new block unnoticed.
  void* old = nullptr;
  if (memcmp(&stale, &live, sizeof stale) == 0) fail("the freed block and the new one have one handle");
  cudaError_t status = cudaIpcOpenMemHandle(&old, stale, cudaIpcMemLazyEnablePeerAccess);
  if (status == cudaSuccess && old == block) fail("a stale handle opens the new block");
  cudaGetLastError();
  peer_send(1);
}

// A forked child is told that CUDA does not work there, at once; exec works, and the parent goes on.
CASE(triton_10443) {
  Watchdog watchdog(60);
  Device<unsigned> word(std::vector<unsigned>{41});
  pid_t child = fork();
  if (child == 0) {
    unsigned value;
    int status = cuInit(0);
    int runtime = cudaMemcpy(&value, word.data, sizeof value, cudaMemcpyDeviceToHost);
    _exit(status == CUDA_ERROR_NOT_INITIALIZED && runtime == cudaErrorInitializationError ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "known_issues", "--peer", "triton_10443", (char*)nullptr);
    _exit(9);
  }
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT(word.host()[0] == 41);
}
static void peer_triton_10443() {
  Device<unsigned> word(std::vector<unsigned>{17});
  EXPECT(word.host()[0] == 17);
}

int main(int argc, char** argv) {
  if (argc == 3 && !strcmp(argv[1], "--peer")) {
    alarm(120);
    const struct {
      const char* name;
      void (*run)();
    } peers[] = {{"Mooncake_3546", peer_Mooncake_3546},
                 {"ROCm_hip_2257", peer_ROCm_hip_2257},
                 {"rocm_systems_11511", peer_rocm_systems_11511},
                 {"mpich_7304", peer_mpich_7304},
                 {"triton_10443", peer_triton_10443}};
    for (const auto& peer : peers)
      if (!strcmp(peer.name, argv[2])) {
        peer.run();
        return Case::failures() ? 1 : 0;
      }
    return 2;
  }
  return run_cases(argc, argv);
}
