// Code objects loaded from a file and from memory, their kernels and variables; kernels compiled at run time. Argument: the code object.
#include "common.h"
#ifdef __HIPCC__
#include <hip/hiprtc.h>
#define RUN_TIME_KERNEL(...) static const char *run_time_kernel = #__VA_ARGS__;
#else
#include "module_kernels.h"
HOST_EXPORT(scale)
HOST_EXPORT(weigh)
HOST_EXPORT_GLOBAL(weights)
#define RUN_TIME_KERNEL(...) __VA_ARGS__
#endif

RUN_TIME_KERNEL(
extern "C" __global__ void made_at_run_time(unsigned *data, int count, unsigned key)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = (data[i] ^ key) * 2654435761u + __popc(data[i]);
})

static const int COUNT = 3000;

#ifdef __HIPCC__
static std::vector<char> compile()
{
    hiprtcProgram program;
    size_t size = 0;
    EXPECT(hiprtcCreateProgram(&program, run_time_kernel, "kernel.hip", 0, nullptr, nullptr) == HIPRTC_SUCCESS);
    const char *options[] = {"--gpu-architecture=gfx90a"};
    hiprtcResult result = hiprtcCompileProgram(program, 1, options);
    if (result != HIPRTC_SUCCESS) {
        EXPECT(hiprtcGetProgramLogSize(program, &size) == HIPRTC_SUCCESS);
        std::vector<char> log(size + 1);
        hiprtcGetProgramLog(program, log.data());
        fprintf(stderr, "hiprtc: %s\n%s\n", hiprtcGetErrorString(result), log.data());
        exit(1);
    }
    EXPECT(hiprtcGetCodeSize(program, &size) == HIPRTC_SUCCESS);
    std::vector<char> code(size);
    EXPECT(hiprtcGetCode(program, code.data()) == HIPRTC_SUCCESS);
    EXPECT(hiprtcDestroyProgram(&program) == HIPRTC_SUCCESS);
    return code;
}
#else
HOST_EXPORT(made_at_run_time)
static std::vector<char> compile() { return {}; }
#endif

static std::vector<char> file(const char *path)
{
    std::vector<char> all;
#ifdef __HIPCC__
    FILE *from = fopen(path, "rb");
    EXPECT(from);
    for (int c; (c = fgetc(from)) != EOF;) all.push_back((char)c);
    fclose(from);
#else
    (void)path;
#endif
    return all;
}

static void kernels_of(hipModule_t module, uint32_t seed)
{
    hipFunction_t scale, weigh, none;
    CHECK(hipModuleGetFunction(&scale, module, "scale"));
    CHECK(hipModuleGetFunction(&weigh, module, "weigh"));
    EXPECT(hipModuleGetFunction(&none, module, "missing") != hipSuccess);

    std::vector<float> in(COUNT);
    for (int i = 0; i < COUNT; i++) in[i] = (float)(i * 3 % 1000);
    float *from, *to;
    CHECK(hipMalloc(&from, COUNT * 4));
    CHECK(hipMalloc(&to, COUNT * 4));
    CHECK(hipMemcpy(from, in.data(), COUNT * 4, hipMemcpyHostToDevice));
    float by = 0.5f * (float)seed;
    int count = COUNT;
    uint8_t low = 200;
    double high = 17;
    void *parameters[] = {&from, &to, &by, &count, &low, &high};
    CHECK(hipModuleLaunchKernel(scale, (COUNT + 63) / 64, 1, 1, 64, 1, 1, 0, 0, parameters, nullptr));
    report_device("scale", to, COUNT);

    uint32_t *data;
    void *weights;
    size_t size;
    CHECK(hipModuleGetGlobal((hipDeviceptr_t *)&weights, &size, module, "weights"));
    EXPECT(size == 64 * 4);
    report_device("weights as loaded", (uint32_t *)weights, 64);
    auto words = random_vector(64, seed);
    CHECK(hipMemcpy(weights, words.data(), 64 * 4, hipMemcpyHostToDevice));
    CHECK(hipMalloc(&data, COUNT * 4));
    auto start = random_vector(COUNT, seed + 1);
    CHECK(hipMemcpy(data, start.data(), COUNT * 4, hipMemcpyHostToDevice));
    void *others[] = {&data, &count};
    CHECK(hipModuleLaunchKernel(weigh, (COUNT + 63) / 64, 1, 1, 64, 1, 1, 0, 0, others, nullptr));
    report_device("weigh", data, COUNT);
    const uint32_t again[64] = {1, 2, 3, 4};
    CHECK(hipMemcpy(weights, again, 64 * 4, hipMemcpyHostToDevice));
    CHECK(hipFree(from));
    CHECK(hipFree(to));
    CHECK(hipFree(data));
}

int main(int argc, char **argv)
{
    hipModule_t from_file, from_memory, compiled;
    const char *path = argc > 1 ? argv[1] : "";
    std::vector<char> image = file(path);
    CHECK(hipModuleLoad(&from_file, path));
    kernels_of(from_file, 3);
    CHECK(hipModuleUnload(from_file));
    CHECK(hipModuleLoadData(&from_memory, image.data()));
    kernels_of(from_memory, 8);
    CHECK(hipModuleUnload(from_memory));

    std::vector<char> code = compile();
    hipFunction_t function;
    uint32_t *data;
    auto start = random_vector(COUNT, 12);
    CHECK(hipModuleLoadData(&compiled, code.data()));
    CHECK(hipModuleGetFunction(&function, compiled, "made_at_run_time"));
    CHECK(hipMalloc(&data, COUNT * 4));
    CHECK(hipMemcpy(data, start.data(), COUNT * 4, hipMemcpyHostToDevice));
    int count = COUNT;
    unsigned key = 0xdeadbeef;
    void *parameters[] = {&data, &count, &key};
    CHECK(hipModuleLaunchKernel(function, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, 0, parameters, nullptr));
    report_device("compiled at run time", data, COUNT);
    CHECK(hipFree(data));
    CHECK(hipModuleUnload(compiled));
    return 0;
}
