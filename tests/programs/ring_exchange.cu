// Two or more MPI ranks exchange device memory in a ring.
//
// The program of the report that started Regauge, grown into a test: each rank fills a buffer with a kernel, sends it to the next rank and
// receives from the previous one with MPI_Isend/MPI_Irecv on the pointers themselves, then checks every byte twice: on the
// device with a kernel, and on the host after a copy.
//
//   mpirun -n 2 ring_exchange [--memory device|pageable|pinned|registered] [--bytes N[K|M]]... [--rounds N] [--offset N]
//
// Exit status 0: every byte of every round was right, on every rank.
#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CUDA_CHECK(call)                                                                                         \
  do {                                                                                                           \
    cudaError_t status = (call);                                                                                 \
    if (status != cudaSuccess) {                                                                                 \
      fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call, cudaGetErrorString(status), status);    \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                              \
    }                                                                                                            \
  } while (0)

// The word that rank `rank` puts at word index `i` in round `round`. Neighbouring words, ranks and rounds all differ.
__host__ __device__ inline uint32_t pattern(uint64_t i, uint32_t rank, uint32_t round) {
  uint32_t x = (uint32_t)i * 2654435761u + rank * 0x9e3779b9u + round * 0x85ebca6bu + (uint32_t)(i >> 32);
  x ^= x >> 15;
  return x * 0x2c1b3c6du;
}

__host__ __device__ inline uint8_t byte_at(uint64_t i, uint32_t rank, uint32_t round) {
  return (uint8_t)(pattern(i / 4, rank, round) >> (8 * (i % 4)));
}

// Buffers may start at any byte, so words are stored bytewise unless the address is aligned.
__global__ void fill(uint8_t* buffer, uint64_t bytes, uint32_t rank, uint32_t round) {
  uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
  bool aligned = ((uintptr_t)buffer & 3) == 0;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i * 4 < bytes; i += stride) {
    if (aligned && i * 4 + 4 <= bytes) {
      ((uint32_t*)buffer)[i] = pattern(i, rank, round);
    } else {
      for (uint64_t b = i * 4; b < bytes && b < i * 4 + 4; b++) buffer[b] = byte_at(b, rank, round);
    }
  }
}

__global__ void verify(const uint8_t* buffer, uint64_t bytes, uint32_t rank, uint32_t round, unsigned long long* wrong) {
  uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
  bool aligned = ((uintptr_t)buffer & 3) == 0;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i * 4 < bytes; i += stride) {
    unsigned bad = 0;
    if (aligned && i * 4 + 4 <= bytes) {
      bad = ((const uint32_t*)buffer)[i] != pattern(i, rank, round) ? 4 : 0;
    } else {
      for (uint64_t b = i * 4; b < bytes && b < i * 4 + 4; b++) bad += buffer[b] != byte_at(b, rank, round);
    }
    if (bad) atomicAdd(wrong, (unsigned long long)bad);
  }
}

enum class Memory { device, pageable, pinned, registered };

struct Options {
  Memory memory = Memory::device;
  std::vector<uint64_t> bytes;
  int rounds = 1;
  uint64_t offset = 0;
};

static const char* const kMemoryNames[] = {"device", "pageable", "pinned", "registered"};

[[noreturn]] static void usage(const char* why) {
  fprintf(stderr, "ring_exchange: %s\nusage: ring_exchange [--memory device|pageable|pinned|registered] [--bytes N[K|M]]... "
                  "[--rounds N] [--offset N]\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
  exit(2);
}

static uint64_t parse_size(const char* text) {
  char* end;
  uint64_t n = strtoull(text, &end, 10);
  if (*end == 'K') { n <<= 10; end++; } else if (*end == 'M') { n <<= 20; end++; }
  if (end == text || *end) usage((std::string("not a size: ") + text).c_str());
  return n;
}

static Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    std::string name = argv[i];
    if (i + 1 == argc) usage(("missing value after " + name).c_str());
    const char* value = argv[++i];
    if (name == "--memory") {
      int kind = 0;
      while (kind < 4 && strcmp(value, kMemoryNames[kind])) kind++;
      if (kind == 4) usage((std::string("unknown memory: ") + value).c_str());
      o.memory = (Memory)kind;
    } else if (name == "--bytes") {
      o.bytes.push_back(parse_size(value));
    } else if (name == "--rounds") {
      o.rounds = (int)parse_size(value);
    } else if (name == "--offset") {
      o.offset = parse_size(value);
    } else {
      usage(("unknown option: " + name).c_str());
    }
  }
  if (o.bytes.empty()) o.bytes.push_back(4 << 20);
  return o;
}

// One buffer of the kind under test. `gpu` is how kernels reach it, NULL where they cannot.
struct Buffer {
  Memory kind;
  uint8_t* base = nullptr;
  uint8_t* data = nullptr;
  uint8_t* gpu = nullptr;

  Buffer(Memory kind, uint64_t bytes, uint64_t offset) : kind(kind) {
    uint64_t size = bytes + offset;
    void* p = nullptr;
    switch (kind) {
      case Memory::device: CUDA_CHECK(cudaMalloc(&p, size)); break;
      case Memory::pinned: CUDA_CHECK(cudaMallocHost(&p, size)); break;
      default: p = malloc(size ? size : 1); break;
    }
    base = (uint8_t*)p;
    data = base + offset;
    if (kind == Memory::registered) {
      CUDA_CHECK(cudaHostRegister(base, size, cudaHostRegisterDefault));
      void* d = nullptr;
      CUDA_CHECK(cudaHostGetDevicePointer(&d, base, 0));
      gpu = (uint8_t*)d + offset;
    } else if (kind != Memory::pageable) {
      gpu = data;
    }
  }

  ~Buffer() {
    switch (kind) {
      case Memory::device: CUDA_CHECK(cudaFree(base)); break;
      case Memory::pinned: CUDA_CHECK(cudaFreeHost(base)); break;
      case Memory::registered: CUDA_CHECK(cudaHostUnregister(base)); free(base); break;
      case Memory::pageable: free(base); break;
    }
  }
};

static int blocks_for(uint64_t bytes) {
  uint64_t blocks = (bytes / 4 + 255) / 256 + 1;
  return (int)(blocks < 4096 ? blocks : 4096);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options o = parse(argc, argv);

  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  if (devices == 0) usage("no CUDA device");
  CUDA_CHECK(cudaSetDevice(rank % devices));
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, rank % devices));
  printf("rank %d of %d: device %d of %d, %s\n", rank, ranks, rank % devices, devices, properties.name);

  unsigned long long* counter;
  CUDA_CHECK(cudaMalloc(&counter, sizeof *counter));
  int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  unsigned long long total_wrong = 0, total_bytes = 0;

  for (uint64_t bytes : o.bytes) {
    Buffer out(o.memory, bytes, o.offset), in(o.memory, bytes, o.offset);
    for (int round = 0; round < o.rounds; round++) {
      if (out.gpu) {
        fill<<<blocks_for(bytes), 256>>>(out.gpu, bytes, rank, round);
        fill<<<blocks_for(bytes), 256>>>(in.gpu, bytes, 0xdead, round);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaDeviceSynchronize());
      } else {
        for (uint64_t i = 0; i < bytes; i++) out.data[i] = byte_at(i, rank, round), in.data[i] = ~out.data[i];
      }

      MPI_Request requests[2];
      MPI_Irecv(in.data, (int)bytes, MPI_BYTE, previous, round, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out.data, (int)bytes, MPI_BYTE, next, round, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

      unsigned long long device_wrong = 0, host_wrong = 0;
      if (in.gpu) {
        CUDA_CHECK(cudaMemset(counter, 0, sizeof *counter));
        verify<<<blocks_for(bytes), 256>>>(in.gpu, bytes, previous, round, counter);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(&device_wrong, counter, sizeof device_wrong, cudaMemcpyDeviceToHost));
      }
      std::vector<uint8_t> copy;
      const uint8_t* seen = in.data;
      if (o.memory == Memory::device) {
        copy.resize(bytes);
        if (bytes) CUDA_CHECK(cudaMemcpy(copy.data(), in.data, bytes, cudaMemcpyDeviceToHost));
        seen = copy.data();
      }
      for (uint64_t i = 0; i < bytes; i++) host_wrong += seen[i] != byte_at(i, previous, round);
      if (device_wrong || host_wrong || (o.rounds == 1 && o.bytes.size() == 1))
        printf("rank %d: %llu bytes of %s memory from rank %d, round %d: %llu wrong on the device%s, %llu wrong on the host\n", rank,
               (unsigned long long)bytes, kMemoryNames[(int)o.memory], previous, round, device_wrong, in.gpu ? "" : " (not reachable)", host_wrong);
      total_wrong += device_wrong + host_wrong;
      total_bytes += bytes;
    }
  }
  CUDA_CHECK(cudaFree(counter));

  unsigned long long sums[2] = {total_wrong, total_bytes}, all[2];
  MPI_Allreduce(sums, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("ring_exchange: %d ranks, %s memory, %zu sizes, %d rounds: %llu bytes received, %llu wrong: %s\n", ranks, kMemoryNames[(int)o.memory],
           o.bytes.size(), o.rounds, all[1], all[0], all[0] ? "FAILED" : "ok");
  MPI_Finalize();
  return all[0] != 0;
}
