// Images of device code: which inputs modules and the linker take, and what they refuse the others with; a few calls of the driver that no
// other area asks. Reads two cubins of an empty kernel `k` from the current folder: k80.cubin, k90.cubin (ptxas -arch=sm_80, sm_90).
#include "kernels.h"
static void init() { register_kernels(); cudaFree(0); cudaGetLastError(); }
static std::vector<char> file(const char* name) {
  std::vector<char> bytes;
  FILE* f = fopen(name, "r");
  char part[4096];
  for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;) bytes.insert(bytes.end(), part, part + n);
  if (f) fclose(f);
  return bytes;
}
#define HDR ".version 7.8\n.target sm_70\n.address_size 64\n"
static const char* kCaller = HDR ".extern .func (.param .b32 r) ext(.param .b32 x);\n.visible .entry u(.param .u64 p) { .reg .u64 t; .reg .u32 r; .param .b32 a; .param .b32 b; ld.param.u64 t, [p]; st.param.b32 [a], 20; call.uni (b), ext, (a); ld.param.b32 r, [b]; st.u32 [t], r; ret; }";
static const char* kCallee = HDR ".visible .func (.param .b32 r) ext(.param .b32 x) { .reg .u32 a; ld.param.u32 a, [x]; add.u32 a, a, 22; st.param.b32 [r], a; ret; }";

GROUP(modules) {
  init();
  CUmodule m;
  auto k80 = file("k80.cubin"), k90 = file("k90.cubin");
  if (!k80.empty()) { CASE("cubin of an older architecture"); DR(cuModuleLoadData(&m, k80.data())); DR(cuModuleLoadFatBinary(&m, k80.data())); }
  if (!k90.empty()) { CASE("cubin of this architecture"); DR(cuModuleLoadData(&m, k90.data())); }
  CASE("headers alone");
  static unsigned char elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  elf[18] = 190;
  DR(cuModuleLoadData(&m, elf));
  elf[18] = 62;
  DR(cuModuleLoadData(&m, elf));
}
GROUP(linker) {
  init();
  CUlinkState l;
  void* image;
  size_t n;
  CUmodule m;
  auto fat = make_fatbin(kCallee, 70);
  auto k80 = file("k80.cubin");
  CASE("fat binary with PTX");
  DR(cuLinkCreate(0, 0, 0, &l));
  DR(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void*)kCaller, strlen(kCaller) + 1, "caller", 0, 0, 0));
  DR(cuLinkAddData(l, CU_JIT_INPUT_FATBINARY, fat.data(), fat.size(), "fat", 0, 0, 0));
  DR(cuLinkComplete(l, &image, &n));
  DR(cuModuleLoadData(&m, image));
  DR(cuLinkDestroy(l));
  CASE("fat binary with PTX for a newer architecture");
  auto high = make_fatbin(kCallee, 120);
  DR(cuLinkCreate(0, 0, 0, &l));
  DR(cuLinkAddData(l, CU_JIT_INPUT_FATBINARY, high.data(), high.size(), "high", 0, 0, 0));
  DR(cuLinkComplete(l, &image, &n));
  DR(cuLinkDestroy(l));
  if (!k80.empty()) {
    CASE("cubin of an older architecture");
    DR(cuLinkCreate(0, 0, 0, &l));
    DR(cuLinkAddData(l, CU_JIT_INPUT_CUBIN, k80.data(), k80.size(), "k80", 0, 0, 0));
    DR(cuLinkComplete(l, &image, &n));
    DR(cuLinkDestroy(l));
  }
  static unsigned char elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  elf[18] = 190;
  for (auto& kind : {std::make_pair("cubin", CU_JIT_INPUT_CUBIN), std::make_pair("fat binary", CU_JIT_INPUT_FATBINARY), std::make_pair("object", CU_JIT_INPUT_OBJECT), std::make_pair("library", CU_JIT_INPUT_LIBRARY)}) {
    CASE(std::string(kind.first) + " that is none");
    DR(cuLinkCreate(0, 0, 0, &l));
    DR(cuLinkAddData(l, kind.second, (void*)"some text, no image of any kind", 32, "text", 0, 0, 0));
    DR(cuLinkDestroy(l));
    CASE(std::string(kind.first) + ": the header of a cubin");
    DR(cuLinkCreate(0, 0, 0, &l));
    DR(cuLinkAddData(l, kind.second, elf, sizeof elf, "elf", 0, 0, 0));
    DR(cuLinkDestroy(l));
  }
}
GROUP(other_calls) {
  init();
  CASE("execution affinity");
  CUexecAffinityParam p;
  DR(cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  DR(cuCtxGetExecAffinity(nullptr, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  DR(cuCtxGetExecAffinity(&p, (CUexecAffinityType)7));
  CASE("flush");
  RT(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner));
  RT(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToAllDevices));
  RT(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, (cudaFlushGPUDirectRDMAWritesScope)150));
  RT(cudaDeviceFlushGPUDirectRDMAWrites((cudaFlushGPUDirectRDMAWritesTarget)3, cudaFlushGPUDirectRDMAWritesToOwner));
  CASE("doubles");
  double d = 2.5;
  RT(cudaSetDoubleForDevice(&d), .f("d", d));
  RT(cudaSetDoubleForHost(&d), .f("d", d));
  RT(cudaSetDoubleForDevice(nullptr));
  CASE("linked and unlinked texts");
  for (const char* text : {".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .u32 a; add.s32 a, zz, 1;\n frob a, yy; ret; }\nxyz", ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k() { .reg .u32 a, b, c; .reg .u64 d; ld.global.u32 a, [x];\n@y ret;\ncall z;\nszext.clamp.u32 a, b, c;\nmapa.u64 d, d, a;\nredux.sync.add.s32 a, b, -1; ret; }"}) {
    char err[4096] = "";
    CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* v[] = {err, (void*)(uintptr_t)sizeof err};
    CUmodule m;
    DR(cuModuleLoadDataEx(&m, text, 2, o, v), .str("log", err));
  }
}
ORACLE_MAIN("images")
