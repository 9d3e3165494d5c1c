// CUDA arrays: every form of copy to, from and between arrays of every shape and element, from and to all kinds of memory. Every byte of
// both sides is compared with what the host computes. What calls answer is the record's matter (tests/oracle/arrays.cc).
#include "cases.h"

#include <cuda.h>
#include <functional>
#include <memory>

using Bytes = std::vector<unsigned char>;

static Bytes pattern(size_t size, unsigned seed) {
  Bytes b(size);
  for (size_t i = 0; i < size; i++) b[i] = (unsigned char)(seed * 41 + i * 7 + (i >> 7) * 3 + (i >> 13));
  return b;
}
static void same(const char* what, const Bytes& got, const Bytes& want) {
  for (size_t i = 0; i < want.size(); i++)
    if (got[i] != want[i]) {
      fail("%s: byte %zu of %zu is %#x, expected %#x", what, i, want.size(), got[i], want[i]);
      return;
    }
}
static cudaStream_t stream() {
  static cudaStream_t s;
  if (!s) OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}
static cudaChannelFormatDesc format(int element) {
  switch (element) {
    case 1: return cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    case 2: return cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
    case 4: return cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindSigned);
    case 8: return cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
    default: return cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindUnsigned);
  }
}

// An array, with a copy of what it must hold.
struct Array {
  size_t element, width, height, depth;  // in elements; 0 where there is no such dimension
  cudaArray_t array = nullptr;
  bool owned = true;
  Bytes want;

  Array(size_t element, size_t width, size_t height, size_t depth, unsigned flags, unsigned seed)
      : element(element), width(width), height(height), depth(depth) {
    auto f = format((int)element);
    OK(cudaMalloc3DArray(&array, &f, make_cudaExtent(width, height, depth), flags));
    write(seed);
  }
  Array(cudaArray_t level, unsigned seed) : array(level), owned(false) {
    cudaChannelFormatDesc f;
    cudaExtent e;
    OK(cudaArrayGetInfo(&f, &e, nullptr, level));
    element = (f.x + f.y + f.z + f.w) / 8, width = e.width, height = e.height, depth = e.depth;
    write(seed);
  }
  ~Array() {
    if (owned) OK(cudaFreeArray(array));
  }
  size_t row() const { return width * element; }
  size_t rows() const { return height ? height : 1; }
  size_t slices() const { return depth ? depth : 1; }
  size_t at(size_t x, size_t y, size_t z) const { return (z * rows() + y) * row() + x; }
  void write(unsigned seed) {
    want = pattern(row() * rows() * slices(), seed);
    CUDA_MEMCPY3D c = {};
    c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = want.data(), c.srcPitch = row(), c.srcHeight = rows();
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = (CUarray)array;
    c.WidthInBytes = row(), c.Height = rows(), c.Depth = slices();
    OK((cudaError_t)cuMemcpy3D(&c));
  }
  void check(const char* what) const {
    Bytes got(want.size() + 64, 0xcd), guard(64, 0xcd);
    CUDA_MEMCPY3D c = {};
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = (CUarray)array;
    c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = got.data(), c.dstPitch = row(), c.dstHeight = rows();
    c.WidthInBytes = row(), c.Height = rows(), c.Depth = slices();
    OK((cudaError_t)cuMemcpy3D(&c));
    same(what, got, want);
    same("what lies behind", Bytes(got.end() - 64, got.end()), guard);
  }
};

enum Kind { DEVICE, PINNED, PAGEABLE, REGISTERED, MANAGED, KINDS };
static const char* const NAMES[] = {"device", "pinned", "pageable", "registered", "managed"};

// Memory of one kind, with a copy of what it must hold.
struct Memory {
  Kind kind;
  unsigned char* data = nullptr;
  Bytes want, own;

  Memory(Kind kind, size_t size, unsigned seed) : kind(kind), want(pattern(size, seed)) {
    if (kind == DEVICE) OK(cudaMalloc((void**)&data, size));
    if (kind == PINNED) OK(cudaMallocHost((void**)&data, size));
    if (kind == MANAGED) OK(cudaMallocManaged((void**)&data, size));
    if (kind == PAGEABLE || kind == REGISTERED) {
      own.resize(size + 8192);
      data = (unsigned char*)(((uintptr_t)own.data() + 4095) & ~(uintptr_t)4095);
    }
    if (kind == REGISTERED) OK(cudaHostRegister(data, size, 0));
    OK(cudaMemcpy(data, want.data(), size, cudaMemcpyDefault));
    OK(cudaDeviceSynchronize());
  }
  ~Memory() {
    if (kind == DEVICE || kind == MANAGED) OK(cudaFree(data));
    if (kind == PINNED) OK(cudaFreeHost(data));
    if (kind == REGISTERED) OK(cudaHostUnregister(data));
  }
  void check(const char* what) const {
    Bytes got(want.size());
    OK(cudaMemcpy(got.data(), data, got.size(), cudaMemcpyDefault));
    same(what, got, want);
  }
};
static void settle() {
  OK(cudaStreamSynchronize(stream()));
  OK(cudaDeviceSynchronize());
}
// Both ways between an array and memory of every kind.
static void both_ways(const char* what, Array& a, size_t size, std::function<void(unsigned char*)> up, std::function<void(unsigned char*)> down,
                      std::function<void(unsigned char* array, unsigned char* memory, bool up)> model) {
  for (int kind = 0; kind < KINDS; kind++) {
    char name[128];
    snprintf(name, sizeof name, "%s, %s memory", what, NAMES[kind]);
    Memory m((Kind)kind, size, 5 + kind);
    a.write(3 + kind);
    up(m.data);
    settle();
    model(a.want.data(), m.want.data(), true);
    a.check(name), m.check(name);
    a.write(20 + kind);
    down(m.data);
    settle();
    model(a.want.data(), m.want.data(), false);
    a.check(name), m.check(name);
  }
}
static void move(unsigned char* array, unsigned char* memory, size_t n, bool up) { up ? memcpy(array, memory, n) : memcpy(memory, array, n); }

CASE(rows) {
  Array a(4, 13, 7, 0, 0, 1);
  auto model = [&](unsigned char* d, unsigned char* m, bool up) {
    for (int y = 0; y < 4; y++) move(d + a.at(7, 2 + y, 0), m + 3 + y * 47, 29, up);
  };
  both_ways("2D", a, 400, [&](unsigned char* m) { OK(cudaMemcpy2DToArray(a.array, 7, 2, m + 3, 47, 29, 4, cudaMemcpyDefault)); },
            [&](unsigned char* m) { OK(cudaMemcpy2DFromArray(m + 3, 47, a.array, 7, 2, 29, 4, cudaMemcpyDefault)); }, model);
  both_ways("2DAsync", a, 400, [&](unsigned char* m) { OK(cudaMemcpy2DToArrayAsync(a.array, 7, 2, m + 3, 47, 29, 4, cudaMemcpyDefault, stream())); },
            [&](unsigned char* m) { OK(cudaMemcpy2DFromArrayAsync(m + 3, 47, a.array, 7, 2, 29, 4, cudaMemcpyDefault, stream())); }, model);
}

CASE(runs_go_on_in_the_next_row) {
  Array a(2, 13, 9, 0, 0, 1);
  for (size_t count : {(size_t)1, (size_t)19, (size_t)60, (size_t)131}) {
    auto model = [&](unsigned char* d, unsigned char* m, bool up) { move(d + a.at(7, 1, 0), m + 5, count, up); };
    both_ways("run", a, 400, [&](unsigned char* m) { OK(cudaMemcpyToArray(a.array, 7, 1, m + 5, count, cudaMemcpyDefault)); },
              [&](unsigned char* m) { OK(cudaMemcpyFromArray(m + 5, a.array, 7, 1, count, cudaMemcpyDefault)); }, model);
    both_ways("runAsync", a, 400, [&](unsigned char* m) { OK(cudaMemcpyToArrayAsync(a.array, 7, 1, m + 5, count, cudaMemcpyDefault, stream())); },
              [&](unsigned char* m) { OK(cudaMemcpyFromArrayAsync(m + 5, a.array, 7, 1, count, cudaMemcpyDefault, stream())); }, model);
  }
  Array b(4, 5, 20, 0, 0, 2);
  OK(cudaMemcpyArrayToArray(b.array, 3, 2, a.array, 7, 1, 131, cudaMemcpyDeviceToDevice));
  OK(cudaDeviceSynchronize());
  memcpy(b.want.data() + b.at(3, 2, 0), a.want.data() + a.at(7, 1, 0), 131);
  b.check("between arrays with rows of different lengths");
  OK(cudaMemcpy2DArrayToArray(b.array, 1, 0, a.array, 9, 3, 17, 5, cudaMemcpyDeviceToDevice));
  OK(cudaDeviceSynchronize());
  for (int y = 0; y < 5; y++) memcpy(b.want.data() + b.at(1, y, 0), a.want.data() + a.at(9, 3 + y, 0), 17);
  b.check("rows between arrays");
}

struct Shape { size_t w, h, d; unsigned flags; };
static const Shape SHAPES[] = {{19, 0, 0, 0}, {19, 7, 0, 0}, {19, 7, 5, 0}, {19, 0, 5, cudaArrayLayered}, {19, 7, 5, cudaArrayLayered}, {7, 7, 6, cudaArrayCubemap}, {7, 7, 12, cudaArrayCubemap | cudaArrayLayered}, {19, 7, 0, cudaArraySurfaceLoadStore}};

CASE(boxes_of_every_shape_and_element) {
  for (auto& s : SHAPES)
    for (size_t element : {1, 2, 4, 8, 16}) {
      Array a(element, s.w, s.h, s.d, s.flags, 1);
      size_t w = 5, h = s.h ? 3 : 1, d = s.d ? 2 : 1, x = 2, y = s.h ? 3 : 0, z = s.d ? 1 : 0, pitch = 9 * element + 3, rows = h + 2;
      // positions in memory count elements, too
      auto model = [&](unsigned char* to, unsigned char* m, bool up) {
        for (size_t k = 0; k < d; k++)
          for (size_t j = 0; j < h; j++) move(to + a.at(x * element, y + j, z + k), m + 1 + ((1 + k) * rows + 1 + j) * pitch + 3 * element, w * element, up);
      };
      auto parameters = [&](unsigned char* m, bool up) {
        cudaMemcpy3DParms p = {};
        auto pointer = make_cudaPitchedPtr(m + 1, pitch, w, rows);
        auto at = make_cudaPos(3, 1, 1), in = make_cudaPos(x, y, z);
        up ? (p.srcPtr = pointer, p.srcPos = at, p.dstArray = a.array, p.dstPos = in) : (p.dstPtr = pointer, p.dstPos = at, p.srcArray = a.array, p.srcPos = in);
        p.extent = make_cudaExtent(w, h, d);
        p.kind = cudaMemcpyDefault;
        return p;
      };
      size_t size = 2 + 4 * rows * pitch;
      both_ways("3D", a, size, [&](unsigned char* m) { auto p = parameters(m, true); OK(cudaMemcpy3D(&p)); }, [&](unsigned char* m) { auto p = parameters(m, false); OK(cudaMemcpy3DAsync(&p, stream())); }, model);
      if (element != 4) continue;
      auto boxed = [&](unsigned char* m, bool up) {
        CUDA_MEMCPY3D c = {};
        auto device = (CUdeviceptr)(m + 1);
        if (up) c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = device, c.srcPitch = pitch, c.srcHeight = rows, c.srcXInBytes = 3 * element, c.srcY = c.srcZ = 1, c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = (CUarray)a.array, c.dstXInBytes = x * element, c.dstY = y, c.dstZ = z;
        else c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = device, c.dstPitch = pitch, c.dstHeight = rows, c.dstXInBytes = 3 * element, c.dstY = c.dstZ = 1, c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = (CUarray)a.array, c.srcXInBytes = x * element, c.srcY = y, c.srcZ = z;
        c.WidthInBytes = w * element, c.Height = h, c.Depth = d;
        return c;
      };
      both_ways("cuMemcpy3D", a, size, [&](unsigned char* m) { auto c = boxed(m, true); OK((cudaError_t)cuMemcpy3DAsync(&c, stream())); }, [&](unsigned char* m) { auto c = boxed(m, false); OK((cudaError_t)cuMemcpy3D(&c)); }, model);
      both_ways("batch", a, size,
                [&](unsigned char* m) {
                  cudaMemcpy3DBatchOp o = {};
                  o.src.type = cudaMemcpyOperandTypePointer, o.src.op.ptr.ptr = m, o.src.op.ptr.rowLength = 8, o.src.op.ptr.layerHeight = h + 1;
                  o.dst.type = cudaMemcpyOperandTypeArray, o.dst.op.array.array = a.array, o.dst.op.array.offset = {x, y, z};
                  o.extent = make_cudaExtent(w, h, d), o.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
                  size_t failed;
                  OK(cudaMemcpy3DBatchAsync(1, &o, &failed, 0, stream()));
                },
                [&](unsigned char* m) {
                  cudaMemcpy3DBatchOp o = {};
                  o.dst.type = cudaMemcpyOperandTypePointer, o.dst.op.ptr.ptr = m, o.dst.op.ptr.rowLength = 8, o.dst.op.ptr.layerHeight = h + 1;
                  o.src.type = cudaMemcpyOperandTypeArray, o.src.op.array.array = a.array, o.src.op.array.offset = {x, y, z};
                  o.extent = make_cudaExtent(w, h, d), o.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
                  size_t failed;
                  OK(cudaMemcpy3DBatchAsync(1, &o, &failed, 0, stream()));
                },
                [&](unsigned char* to, unsigned char* m, bool up) {
                  for (size_t k = 0; k < d; k++)
                    for (size_t j = 0; j < h; j++) move(to + a.at(x * element, y + j, z + k), m + (k * (h + 1) + j) * 8 * element, w * element, up);
                });
    }
}

CASE(boxes_between_arrays_of_every_shape) {
  for (auto& to : SHAPES)
    for (auto& from : SHAPES) {
      Array a(4, to.w, to.h, to.d, to.flags, 1), b(4, from.w, from.h, from.d, from.flags, 2);
      cudaMemcpy3DParms p = {};
      size_t h = to.h && from.h ? 3 : 1, d = to.d && from.d ? 2 : 1;
      p.dstArray = a.array, p.srcArray = b.array, p.kind = cudaMemcpyDeviceToDevice, p.extent = make_cudaExtent(4, h, d);
      p.dstPos = make_cudaPos(1, to.h ? 2 : 0, to.d ? 3 : 0), p.srcPos = make_cudaPos(3, from.h ? 4 : 0, from.d ? 1 : 0);
      OK(cudaMemcpy3D(&p));
      OK(cudaDeviceSynchronize());
      for (size_t k = 0; k < d; k++)
        for (size_t j = 0; j < h; j++) memcpy(a.want.data() + a.at(4, p.dstPos.y + j, p.dstPos.z + k), b.want.data() + b.at(12, p.srcPos.y + j, p.srcPos.z + k), 16);
      a.check("between arrays"), b.check("the source");
    }
}

CASE(the_drivers_copies_of_a_row) {
  Array a(1, 101, 0, 0, 0, 1), b(1, 77, 3, 0, 0, 2);
  auto model = [&](unsigned char* d, unsigned char* m, bool up) { move(d + 13, m + 7, 55, up); };
  for (int form = 0; form < 3; form++)
    for (int kind = 0; kind < KINDS; kind++) {
      if (form == 1 && (kind == PAGEABLE)) continue;
      Memory m((Kind)kind, 100, 7);
      a.write(form + 1);
      if (form == 0) OK((cudaError_t)cuMemcpyHtoA((CUarray)a.array, 13, m.data + 7, 55));
      if (form == 1) OK((cudaError_t)cuMemcpyDtoA((CUarray)a.array, 13, (CUdeviceptr)m.data + 7, 55));
      if (form == 2) OK((cudaError_t)cuMemcpyHtoAAsync((CUarray)a.array, 13, m.data + 7, 55, stream()));
      settle();
      model(a.want.data(), m.want.data(), true);
      a.check("to a row"), m.check("to a row");
      a.write(form + 9);
      if (form == 0) OK((cudaError_t)cuMemcpyAtoH(m.data + 7, (CUarray)a.array, 13, 55));
      if (form == 1) OK((cudaError_t)cuMemcpyAtoD((CUdeviceptr)m.data + 7, (CUarray)a.array, 13, 55));
      if (form == 2) OK((cudaError_t)cuMemcpyAtoHAsync(m.data + 7, (CUarray)a.array, 13, 55, stream()));
      settle();
      model(a.want.data(), m.want.data(), false);
      a.check("from a row"), m.check("from a row");
    }
  OK((cudaError_t)cuMemcpyAtoA((CUarray)b.array, 9, (CUarray)a.array, 31, 61));
  settle();
  memcpy(b.want.data() + 9, a.want.data() + 31, 61);
  b.check("between rows");
}

CASE(large_arrays_pass_through_many_staging_buffers) {
  Array a(16, 701, 401, 2, 0, 1);
  Memory m(PAGEABLE, a.want.size(), 3);
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(m.data, a.row(), a.width, a.height), p.dstArray = a.array, p.extent = make_cudaExtent(a.width, a.height, a.depth), p.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3DAsync(&p, stream()));
  a.want = m.want;
  settle();
  a.check("large");
}

CASE(levels_share_no_byte) {
  cudaMipmappedArray_t m;
  auto f = format(8);
  OK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(37, 21, 5), 6));
  std::vector<std::unique_ptr<Array>> levels;
  for (unsigned i = 0; i < 6; i++) {
    cudaArray_t level;
    OK(cudaGetMipmappedArrayLevel(&level, m, i));
    levels.emplace_back(new Array(level, 50 + i));
  }
  for (auto& level : levels) level->check("a level after all were written");
  OK(cudaFreeMipmappedArray(m));
  cudaArray_t level;
  if (cudaGetMipmappedArrayLevel(&level, m, 0) == cudaSuccess) fail("a level of a freed mipmapped array");
  cudaGetLastError();
}

CASE(graphs_copy_arrays_and_notice_that_they_are_gone) {
  Array a(4, 13, 7, 0, 0, 1), v(4, 5, 4, 3, 0, 2);
  Memory m(PAGEABLE, 1024, 3), d(DEVICE, 1024, 4);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed));
  OK(cudaMemcpyToArrayAsync(a.array, 8, 1, d.data + 1, 150, cudaMemcpyDefault, stream()));
  OK(cudaMemcpy2DToArrayAsync(a.array, 5, 5, m.data, 31, 27, 2, cudaMemcpyDefault, stream()));
  cudaMemcpy3DParms p = {};
  p.srcArray = v.array, p.srcPos = make_cudaPos(1, 1, 1), p.dstPtr = make_cudaPitchedPtr(m.data + 500, 20, 20, 4), p.extent = make_cudaExtent(3, 2, 2), p.kind = cudaMemcpyDefault;
  OK(cudaMemcpy3DAsync(&p, stream()));
  OK(cudaStreamEndCapture(stream(), &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 3; launch++) {
    a.write(30 + launch), v.write(40 + launch);
    OK(cudaGraphLaunch(exec, stream()));
    settle();
    memcpy(a.want.data() + a.at(8, 1, 0), d.want.data() + 1, 150);
    for (int y = 0; y < 2; y++) memcpy(a.want.data() + a.at(5, 5 + y, 0), m.want.data() + y * 31, 27);
    for (int z = 0; z < 2; z++)
      for (int y = 0; y < 2; y++) memcpy(m.want.data() + 500 + (z * 4 + y) * 20, v.want.data() + v.at(4, 1 + y, 1 + z), 12);
    a.check("captured"), v.check("captured"), m.check("captured"), d.check("captured");
  }
  {
    Array gone(4, 5, 4, 0, 0, 1);
    cudaGraph_t other;
    cudaGraphExec_t run;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&other, 0));
    cudaMemcpy3DParms q = {};
    q.srcArray = gone.array, q.dstArray = a.array, q.extent = make_cudaExtent(2, 2, 1), q.kind = cudaMemcpyDeviceToDevice;
    OK(cudaGraphAddMemcpyNode(&node, other, nullptr, 0, &q));
    OK(cudaGraphInstantiate(&run, other, 0));
    OK(cudaFreeArray(gone.array));
    gone.owned = false;
    if (cudaGraphLaunch(run, stream()) == cudaSuccess) fail("a launch that copies a freed array");
    cudaGetLastError();
    settle();
    a.check("after a refused launch");
  }
}

CASE(arrays_of_two_devices) {
  int count;
  OK(cudaGetDeviceCount(&count));
  if (count < 2) return;
  Array a(4, 13, 7, 0, 0, 1);
  OK(cudaSetDevice(1));
  Array b(4, 11, 9, 0, 0, 2);
  cudaMemcpy3DPeerParms p = {};
  p.dstArray = a.array, p.dstDevice = 0, p.dstPos = make_cudaPos(2, 3, 0), p.srcArray = b.array, p.srcDevice = 1, p.srcPos = make_cudaPos(1, 4, 0), p.extent = make_cudaExtent(9, 4, 1);
  OK(cudaMemcpy3DPeer(&p));
  OK(cudaDeviceSynchronize());
  for (int y = 0; y < 4; y++) memcpy(a.want.data() + a.at(8, 3 + y, 0), b.want.data() + b.at(4, 4 + y, 0), 36);
  OK(cudaSetDevice(0));
  a.check("from the other device"), b.check("the source");
}

CASE(memory_comes_back) {
  size_t before, during, after, total;
  OK(cudaMemGetInfo(&before, &total));
  auto f = format(16);
  cudaArray_t array;
  cudaMipmappedArray_t levels;
  OK(cudaMallocArray(&array, &f, 1024, 1024));
  OK(cudaMallocMipmappedArray(&levels, &f, make_cudaExtent(512, 512, 0), 10));
  OK(cudaMemGetInfo(&during, &total));
  if (before - during < (20 << 20)) fail("arrays of 20 MiB took %zu bytes", before - during);
  OK(cudaFreeArray(array));
  OK(cudaFreeMipmappedArray(levels));
  OK(cudaMemGetInfo(&after, &total));
  if (after != before) fail("%zu bytes were free before, %zu are after", before, after);
}

CASE(a_reset_ends_arrays) {
  auto f = format(16);
  cudaArray_t array;
  OK(cudaMallocArray(&array, &f, 64, 64));
  OK(cudaDeviceReset());
  cudaChannelFormatDesc g;
  if (cudaGetChannelDesc(&g, array) == cudaSuccess) fail("an array after a reset");
  cudaGetLastError();
  OK(cudaMallocArray(&array, &f, 64, 64));
  OK(cudaFreeArray(array));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
