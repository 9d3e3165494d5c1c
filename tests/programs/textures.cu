// Texture and surface objects: what kernels fetch, filter, load and store, against a model of the sampler on the host. What calls answer
// and what an H200 gave bit for bit is the record's matter (tests/oracle/textures.cc).
#include "cases.h"

#include <cstddef>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

struct Coordinates {
  float x, y, z;
  int layer;
};

// --- the model -----------------------------------------------------------------------------------------------------------------------
struct Axis {
  int first, second, weight;  // -1 is the border; weights are of 256
};
static int fold(long i, int n, int mode) {
  if (mode == cudaAddressModeBorder) return i < 0 || i >= n ? -1 : (int)i;
  if (mode == cudaAddressModeClamp) return i < 0 ? 0 : i >= n ? n - 1 : (int)i;
  long period = mode == cudaAddressModeWrap ? n : 2 * n;
  i = (i % period + period) % period;
  return i < n ? (int)i : (int)(2 * n - 1 - i);
}
static Axis axis(float u, int n, int mode, bool normalized, bool linear) {
  if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) mode = cudaAddressModeClamp;
  double t = u;
  if (normalized) t = std::floor(u * 2097152.0) / 2097152.0 * n;
  if (!linear) return {fold((long)std::floor(t), n, mode), 0, 0};
  long fixed = (long)std::floor(t * 256 - 127.5);
  Axis a = {fold(fixed >> 8, n, mode), fold((fixed >> 8) + 1, n, mode), (int)(fixed & 255)};
  if (mode == cudaAddressModeClamp && a.first == a.second) a.weight = 0;
  return a;
}
using Texel = std::function<double(int, int, int)>;
static float sample(const Texel& texel, Axis x, Axis y, Axis z, bool linear) {
  if (!linear) return (float)texel(x.first, y.first, z.first);
  double sum = 0;
  for (int corner = 0; corner < 8; corner++) {
    bool right = corner & 1, low = corner & 2, behind = corner & 4;
    int wz = behind ? z.weight : 256 - z.weight;
    int wr = (wz * x.weight + 128) >> 8, wx = right ? wr : wz - wr;
    int wl = (wx * y.weight + (right || behind ? 128 : 127)) >> 8, w = low ? wl : wx - wl;
    if (w) sum += w * texel(right ? x.second : x.first, low ? y.second : y.first, behind ? z.second : z.first);
  }
  return (float)(sum / 256);
}

// --- arrays and objects --------------------------------------------------------------------------------------------------------------
template <typename T>
struct Array {
  int width, height, depth;
  cudaArray_t array = nullptr;
  std::vector<T> values;
  Array(int width, int height, int depth, unsigned flags = 0) : width(width), height(height), depth(depth) {
    auto format = cudaCreateChannelDesc<T>();
    OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
    values.resize(size());
    for (size_t i = 0; i < size(); i++) values[i] = (T)((int)(i * 37 % 101) - 50 + (int)(i / 101));
    cudaMemcpy3DParms p = box();
    p.srcPtr = make_cudaPitchedPtr(values.data(), width * sizeof(T), width, rows()), p.dstArray = array, p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
  }
  ~Array() { OK(cudaFreeArray(array)); }
  int rows() const { return height ? height : 1; }
  int slices() const { return depth ? depth : 1; }
  size_t size() const { return (size_t)width * rows() * slices(); }
  cudaMemcpy3DParms box() const {
    cudaMemcpy3DParms p = {};
    p.extent = make_cudaExtent(width, rows(), slices());
    return p;
  }
  std::vector<T> now() const {
    std::vector<T> got(size());
    cudaMemcpy3DParms p = box();
    p.dstPtr = make_cudaPitchedPtr(got.data(), width * sizeof(T), width, rows()), p.srcArray = array, p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    return got;
  }
  T at(int x, int y, int z) const { return values[((size_t)z * rows() + y) * width + x]; }
  cudaResourceDesc resource() const {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray, r.res.array.array = array;
    return r;
  }
};
static cudaTextureDesc how(cudaTextureAddressMode mode, bool linear, bool normalized) {
  cudaTextureDesc d = {};
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = mode;
  d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.normalizedCoords = normalized;
  d.borderColor[0] = 7.25f;
  return d;
}
struct Texture {
  cudaTextureObject_t object = 0;
  Texture(const cudaResourceDesc& r, const cudaTextureDesc& d) { OK(cudaCreateTextureObject(&object, &r, &d, nullptr)); }
  ~Texture() { OK(cudaDestroyTextureObject(object)); }
};
struct Surface {
  cudaSurfaceObject_t object = 0;
  explicit Surface(const cudaResourceDesc& r) { OK(cudaCreateSurfaceObject(&object, &r)); }
  ~Surface() { OK(cudaDestroySurfaceObject(object)); }
};

static std::vector<Coordinates> somewhere(float scale_x, float scale_y, float scale_z, int layers) {
  std::vector<Coordinates> all;
  unsigned seed = 12345;
  auto next = [&](float from, float to) {
    seed = seed * 1664525 + 1013904223;
    return from + (to - from) * (float)(seed >> 8) / 16777216.f;
  };
  for (int i = 0; i < 500; i++) all.push_back({next(-12, 24) * scale_x, next(-10, 16) * scale_y, next(-6, 9) * scale_z, layers ? i % layers : 0});
  return all;
}

template <int KIND>
__global__ void fetch(cudaTextureObject_t t, const Coordinates* at, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Coordinates c = at[i];
  if (KIND == 1) out[i] = tex1D<float>(t, c.x);
  if (KIND == 2) out[i] = tex2D<float>(t, c.x, c.y);
  if (KIND == 3) out[i] = tex3D<float>(t, c.x, c.y, c.z);
  if (KIND == 5) out[i] = tex1DLayered<float>(t, c.x, c.layer);
  if (KIND == 6) out[i] = tex2DLayered<float>(t, c.x, c.y, c.layer);
}

template <int KIND>
static void compare(const char* what, int width, int height, int depth, unsigned flags) {
  Array<float> a(width, height, depth, flags);
  bool layered = flags & cudaArrayLayered;
  for (auto mode : {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder})
    for (bool linear : {false, true})
      for (bool normalized : {false, true}) {
        Texture t(a.resource(), how(mode, linear, normalized));
        auto at = somewhere(normalized ? 1.f / 16 : 1, normalized ? 1.f / 16 : 1, normalized ? 1.f / 8 : 1, layered ? depth : 0);
        Device<Coordinates> in(at);
        Device<float> out(at.size());
        fetch<KIND><<<8, 64>>>(t.object, in.data, out.data, (int)at.size());
        auto got = out.host();
        int wrong = 0;
        for (size_t i = 0; i < at.size() && wrong < 3; i++) {
          const auto& c = at[i];
          Axis x = axis(c.x, width, mode, normalized, linear);
          // A plain row lies in a plane, at its upper edge; one of a layered array does not.
          Axis y = height ? axis(c.y, height, mode, normalized, linear) : axis(0, 1, layered ? cudaAddressModeClamp : mode, normalized, linear);
          Axis z = layered || !depth ? Axis{c.layer, c.layer, 0} : axis(c.z, depth, mode, normalized, linear);
          Texel texel = [&](int x, int y, int z) { return x < 0 || y < 0 || z < 0 ? 7.25 : (double)a.at(x, y, z); };
          float want = sample(texel, x, y, z, linear);
          if (!close(got[i], want, 1)) fail("%s, mode %d, linear %d, normalized %d: (%g, %g, %g, %d) gave %.9g, expected %.9g", what, mode, linear, normalized, c.x, c.y, c.z, c.layer, got[i], want), wrong++;
        }
      }
}
CASE(rows) { compare<1>("row", 13, 0, 0, 0); }
CASE(planes) { compare<2>("plane", 13, 7, 0, 0); }
CASE(volumes) { compare<3>("volume", 9, 6, 5, 0); }
CASE(layers_of_rows) { compare<5>("layers of rows", 13, 0, 4, cudaArrayLayered); }
CASE(layers_of_planes) { compare<6>("layers of planes", 13, 7, 4, cudaArrayLayered); }

__global__ void fetch_linear(cudaTextureObject_t floats, cudaTextureObject_t bytes, cudaTextureObject_t fractions, float* f, uchar4* b, float4* q, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f[i] = tex1Dfetch<float>(floats, i - 8), b[i] = tex1Dfetch<uchar4>(bytes, i - 8), q[i] = tex1Dfetch<float4>(fractions, i - 8);
}
CASE(linear_memory) {
  std::vector<float> f(100);
  std::vector<uchar4> b(100);
  for (int i = 0; i < 100; i++) f[i] = i * 1.5f, b[i] = make_uchar4(i, 255 - i, i * 2, 3 * i);
  Device<float> df(f);
  Device<uchar4> db(b);
  auto resource = [](void* p, cudaChannelFormatDesc d, size_t n) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear, r.res.linear = {p, d, n};
    return r;
  };
  auto d = how(cudaAddressModeClamp, false, false), n = d;
  n.readMode = cudaReadModeNormalizedFloat;
  Texture tf(resource(df.data, cudaCreateChannelDesc<float>(), 400), d), tb(resource(db.data, cudaCreateChannelDesc<uchar4>(), 400), d), tq(resource(db.data, cudaCreateChannelDesc<uchar4>(), 400), n);
  Device<float> of(120);
  Device<uchar4> ob(120);
  Device<float4> oq(120);
  fetch_linear<<<2, 64>>>(tf.object, tb.object, tq.object, of.data, ob.data, oq.data, 120);
  auto gf = of.host();
  auto gb = ob.host();
  auto gq = oq.host();
  for (int i = 0; i < 120; i++) {
    bool in = i >= 8 && i < 108;
    uchar4 want = in ? b[i - 8] : make_uchar4(0, 0, 0, 0);
    if (gf[i] != (in ? f[i - 8] : 0) || memcmp(&gb[i], &want, 4) || gq[i].x != want.x / 255.f || gq[i].y != want.y / 255.f || gq[i].z != want.z / 255.f || gq[i].w != want.w / 255.f) {
      fail("element %d", i - 8);
      break;
    }
  }
}

template <typename T>
__global__ void fetch_plane(cudaTextureObject_t t, T* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width) out[y * width + x] = tex2D<T>(t, x + .5f, y + .5f);
}
template <typename T>
static void whole_plane() {
  Array<T> a(37, 11, 0);
  Texture t(a.resource(), how(cudaAddressModeClamp, false, false));
  Device<T> out(a.size());
  fetch_plane<T><<<dim3(1, 11), 64>>>(t.object, out.data, 37, 11);
  auto got = out.host();
  if (memcmp(got.data(), a.values.data(), got.size() * sizeof(T))) fail("elements of %zu bytes", sizeof(T));
}
CASE(every_integer) { whole_plane<unsigned char>(), whole_plane<signed char>(), whole_plane<unsigned short>(), whole_plane<short>(), whole_plane<unsigned>(), whole_plane<int>(), whole_plane<float>(); }

CASE(pitched_memory) {
  const int width = 21, height = 9;
  float* data;
  size_t pitch;
  OK(cudaMallocPitch(&data, &pitch, width * 4, height));
  std::vector<float> values(width * height);
  for (size_t i = 0; i < values.size(); i++) values[i] = i * .75f;
  OK(cudaMemcpy2D(data, pitch, values.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D.devPtr = data, r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  r.res.pitch2D.width = width, r.res.pitch2D.height = height, r.res.pitch2D.pitchInBytes = pitch;
  {
    Texture t(r, how(cudaAddressModeClamp, false, false));
    Device<float> out(values.size());
    fetch_plane<float><<<dim3(1, height), 64>>>(t.object, out.data, width, height);
    if (out.host() != values) fail("rows of memory");
  }
  OK(cudaFree(data));
}

__global__ void fetch_cube(cudaTextureObject_t t, const Coordinates* at, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = texCubemapLayered<float>(t, at[i].x, at[i].y, at[i].z, at[i].layer);
}
CASE(cubes) {
  Array<float> a(5, 5, 12, cudaArrayCubemap | cudaArrayLayered);
  Texture t(a.resource(), how(cudaAddressModeClamp, false, true));
  auto at = somewhere(1, 1, 2, 2);
  Device<Coordinates> in(at);
  Device<float> out(at.size());
  fetch_cube<<<8, 64>>>(t.object, in.data, out.data, (int)at.size());
  auto got = out.host();
  for (size_t i = 0; i < at.size(); i++) {
    float x = at[i].x, y = at[i].y, z = at[i].z, ax = fabsf(x), ay = fabsf(y), az = fabsf(z), s, v, m;
    int face;
    if (az >= ax && az >= ay) face = z < 0 ? 5 : 4, s = z < 0 ? -x : x, v = -y, m = az;
    else if (ay >= ax) face = y < 0 ? 3 : 2, s = x, v = y < 0 ? -z : z, m = ay;
    else face = x < 0 ? 1 : 0, s = x < 0 ? z : -z, v = -y, m = ax;
    Axis u = axis((s / m + 1) / 2, 5, cudaAddressModeClamp, true, false), w = axis((v / m + 1) / 2, 5, cudaAddressModeClamp, true, false);
    float want = a.at(u.first, w.first, at[i].layer * 6 + face);
    if (got[i] != want) {
      fail("direction (%g, %g, %g) of cube %d gave %g, expected %g", x, y, z, at[i].layer, got[i], want);
      break;
    }
  }
}

__global__ void fetch_levels(cudaTextureObject_t t, const float* lod, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex2DLod<float>(t, .5f, .5f, lod[i]);
}
CASE(levels) {
  cudaMipmappedArray_t levels;
  auto format = cudaCreateChannelDesc<float>();
  OK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(16, 16, 0), 5));
  for (int l = 0; l < 5; l++) {
    cudaArray_t level;
    OK(cudaGetMipmappedArrayLevel(&level, levels, l));
    int n = 16 >> l;
    std::vector<float> values(n * n, 100.f * l);
    OK(cudaMemcpy2DToArray(level, 0, 0, values.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeMipmappedArray, r.res.mipmap.mipmap = levels;
  for (bool mix : {false, true}) {
    auto d = how(cudaAddressModeClamp, true, true);
    d.mipmapFilterMode = mix ? cudaFilterModeLinear : cudaFilterModePoint, d.maxMipmapLevelClamp = 10;
    Texture t(r, d);
    std::vector<float> lod = {-2, 0, .25f, .49f, .5f, 1, 1.75f, 2.5f, 3, 4, 9};
    Device<float> in(lod), out(lod.size());
    fetch_levels<<<1, 32>>>(t.object, in.data, out.data, (int)lod.size());
    auto got = out.host();
    for (size_t i = 0; i < lod.size(); i++) {
      float l = std::min(4.f, std::max(0.f, lod[i]));
      float want = mix ? 100 * std::floor(l * 256) / 256 : 100 * std::floor(l + .5f);
      if (!close(got[i], want, 1)) fail("level %g, mixed %d: %g, expected %g", lod[i], mix, got[i], want);
    }
  }
  OK(cudaFreeMipmappedArray(levels));
}

__global__ void gather(cudaTextureObject_t t, const Coordinates* at, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2Dgather<float4>(t, at[i].x, at[i].y, 0);
}
CASE(gathers) {
  Array<float> a(13, 7, 0, cudaArrayTextureGather);
  Texture t(a.resource(), how(cudaAddressModeClamp, false, false));
  auto at = somewhere(1, 1, 1, 0);
  Device<Coordinates> in(at);
  Device<float4> out(at.size());
  gather<<<8, 64>>>(t.object, in.data, out.data, (int)at.size());
  auto got = out.host();
  for (size_t i = 0; i < at.size(); i++) {
    Axis x = axis(at[i].x, 13, cudaAddressModeClamp, false, true), y = axis(at[i].y, 7, cudaAddressModeClamp, false, true);
    float want[4] = {a.at(x.first, y.second, 0), a.at(x.second, y.second, 0), a.at(x.second, y.first, 0), a.at(x.first, y.first, 0)};
    if (memcmp(&got[i], want, 16)) {
      fail("(%g, %g): %g %g %g %g, expected %g %g %g %g", at[i].x, at[i].y, got[i].x, got[i].y, got[i].z, got[i].w, want[0], want[1], want[2], want[3]);
      break;
    }
  }
}

__global__ void transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width) surf2Dwrite(surf2Dread<float>(from, x * 4, y) * 2, to, y * 4, x);
}
CASE(surfaces_of_planes) {
  Array<float> a(37, 11, 0, cudaArraySurfaceLoadStore), b(11, 37, 0, cudaArraySurfaceLoadStore);
  Surface from(a.resource()), to(b.resource());
  transpose<<<dim3(1, 11), 64>>>(from.object, to.object, 37, 11);
  auto got = b.now();
  for (int y = 0; y < 11; y++)
    for (int x = 0; x < 37; x++)
      if (got[x * 11 + y] != a.at(x, y, 0) * 2) return fail("(%d, %d) is %g", x, y, got[x * 11 + y]);
}
__global__ void copy_over_edges(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int* clamped, int* zeroed) {
  int x = (int)threadIdx.x - 4, y = (int)threadIdx.y - 2, z = (int)threadIdx.z - 1;
  int i = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  clamped[i] = surf3Dread<int>(from, x * 4, y, z, cudaBoundaryModeClamp);
  zeroed[i] = surf3Dread<int>(from, x * 4, y, z, cudaBoundaryModeZero);
  surf3Dwrite(clamped[i] + 1, to, x * 4, y, z, cudaBoundaryModeZero);
}
CASE(surfaces_of_volumes) {
  const int w = 9, h = 6, d = 3;
  Array<int> a(w, h, d, cudaArraySurfaceLoadStore), b(w, h, d, cudaArraySurfaceLoadStore);
  Surface from(a.resource()), to(b.resource());
  dim3 block(w + 8, h + 4, d + 2);
  Device<int> clamped(block.x * block.y * block.z), zeroed(clamped.count);
  copy_over_edges<<<1, block>>>(from.object, to.object, clamped.data, zeroed.data);
  auto gc = clamped.host(), gz = zeroed.host(), gb = b.now();
  int i = 0;
  for (int z = -1; z < d + 1; z++)
    for (int y = -2; y < h + 2; y++)
      for (int x = -4; x < w + 4; x++, i++) {
        auto near = [](int v, int n) { return v < 0 ? 0 : v >= n ? n - 1 : v; };
        bool in = x >= 0 && x < w && y >= 0 && y < h && z >= 0 && z < d;
        int want = a.at(near(x, w), near(y, h), near(z, d));
        if (gc[i] != want || gz[i] != (in ? want : 0)) return fail("(%d, %d, %d): %d and %d, expected %d", x, y, z, gc[i], gz[i], want);
        if (in && gb[(z * h + y) * w + x] != want + 1) return fail("(%d, %d, %d) was not written", x, y, z);
      }
}
__global__ void swap_layers(cudaSurfaceObject_t s, int width, int layers) {
  int x = threadIdx.x;
  if (x >= width) return;
  short2 a = surf1DLayeredread<short2>(s, x * 4, 0), b = surf1DLayeredread<short2>(s, x * 4, layers - 1);
  surf1DLayeredwrite(b, s, x * 4, 0), surf1DLayeredwrite(a, s, x * 4, layers - 1);
}
CASE(surfaces_of_layers) {
  auto format = cudaCreateChannelDesc<short2>();
  cudaArray_t array;
  OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(20, 0, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
  std::vector<short> values(120), got(120);
  for (int i = 0; i < 120; i++) values[i] = i * 7;
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(values.data(), 80, 20, 1), p.dstArray = array, p.extent = make_cudaExtent(20, 1, 3), p.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&p));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray, r.res.array.array = array;
  {
    Surface s(r);
    swap_layers<<<1, 32>>>(s.object, 20, 3);
  }
  cudaMemcpy3DParms q = {};
  q.dstPtr = make_cudaPitchedPtr(got.data(), 80, 20, 1), q.srcArray = array, q.extent = p.extent, q.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&q));
  for (int i = 0; i < 120; i++)
    if (got[i] != values[i / 40 == 1 ? i : (i + 80) % 160]) return fail("%d is %d", i, got[i]);
  OK(cudaFreeArray(array));
}

__global__ void fetch_everything(cudaTextureObject_t object, float4* out, int* reached) {
  out[0] = tex1Dfetch<float4>(object, threadIdx.x);
  out[1] = tex2D<float4>(object, 0.5f, threadIdx.x);
  out[2] = tex3D<float4>(object, 0.5f, 1.5f, 2.5f);
  out[3] = tex2DLod<float4>(object, 0.5f, 0.5f, 1.f);
  out[4] = tex2DGrad<float4>(object, 0.5f, 0.5f, make_float2(1, 0), make_float2(0, 1));
  out[5] = tex2DLayered<float4>(object, 0.5f, 0.5f, 3);
  out[6] = texCubemap<float4>(object, 1.f, 0.5f, 0.25f);
  out[7] = tex2Dgather<float4>(object, 0.5f, 0.5f, 1);
  atomicAdd(reached, 1);
}

// Number 0 is what programs pass where they have no texture. As recorded, a fetch through it is no fault; here it gives zeroes.
CASE(number_0_gives_zeroes) {
  Device<float4> out(std::vector<float4>(8, make_float4(1, 2, 3, 4)));
  Device<int> reached(std::vector<int>{0});
  fetch_everything<<<1, 33>>>(0, out.data, reached.data);
  OK(cudaDeviceSynchronize());
  EXPECT(reached.host()[0] == 33);
  for (const float4& v : out.host()) EXPECT(v.x == 0 && v.y == 0 && v.z == 0 && v.w == 0);
}

// A child process runs `body` before anything of CUDA was used in it; its status is the answer.
static int in_a_child(const char* self, const char* what) {
  pid_t child = fork();
  if (!child) {
    execl(self, self, "--child", what, nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
static const char* self;
static int child(const char* what) {
  Device<Coordinates> in(std::vector<Coordinates>(64, {1, 1, 1, 0}));
  Device<float> out(64);
  uint64_t object = strtoull(what, nullptr, 0);
  fetch<2><<<1, 64>>>(object, in.data, out.data, 64);
  cudaError_t status = cudaDeviceSynchronize();
  fflush(stdout);
  _exit(status == cudaErrorIllegalAddress ? 0 : status == cudaSuccess ? 97 : 96);
}
CASE(numbers_that_are_no_objects_fault) {
  for (const char* number : {"12345", "0x7fff00000000", "0x123456789abcdef0"}) {
    int status = in_a_child(self, number);
    if (status) fail("object %s: status %d", number, status);
  }
}

CASE(many_objects) {
  Array<float> a(16, 16, 0);
  Device<float> out(256);
  for (int round = 0; round < 4; round++) {
    std::vector<cudaTextureObject_t> objects(150);
    for (auto& object : objects) {
      auto r = a.resource();
      auto d = how(cudaAddressModeClamp, false, false);
      OK(cudaCreateTextureObject(&object, &r, &d, nullptr));
    }
    fetch_plane<float><<<dim3(1, 16), 64>>>(objects[round * 37], out.data, 16, 16);
    for (auto object : objects) OK(cudaDestroyTextureObject(object));
    if (out.host() != a.values) return fail("round %d", round);
  }
}

CASE(a_reset_ends_objects) {
  cudaTextureObject_t object;
  {
    Array<float> a(8, 8, 0);
    auto r = a.resource();
    auto d = how(cudaAddressModeClamp, false, false);
    OK(cudaCreateTextureObject(&object, &r, &d, nullptr));
  }
  OK(cudaDeviceReset());
  cudaTextureDesc d;
  GIVES(cudaErrorInvalidValue, cudaGetTextureObjectTextureDesc(&d, object));
}

int main(int argc, char** argv) {
  self = "/proc/self/exe";
  if (argc == 3 && !strcmp(argv[1], "--child")) return child(argv[2]);
  return run_cases(argc, argv);
}
