// Modules: a program lists its functions by name, and every module that is loaded has them all.
#pragma once

struct HostFunction {
    std::function<std::function<void()>(void **)> bind; // takes the values that kernelParams points to
};
typedef HostFunction *hipFunction_t;
typedef int hipModule_t;
inline std::map<std::string, HostFunction> host_functions;
inline std::map<std::string, std::pair<void *, size_t>> host_globals;

template <class... P, size_t... I>
std::function<void()> host_bind(void (*kernel)(P...), void **arguments, std::index_sequence<I...>)
{
    auto values = std::make_tuple(*(std::remove_const_t<P> *)arguments[I]...);
    return [=] { std::apply(kernel, values); };
}
template <class... P> bool host_export(const char *name, void (*kernel)(P...))
{
    host_functions[name].bind = [=](void **arguments) { return host_bind(kernel, arguments, std::index_sequence_for<P...>()); };
    return true;
}
#define HOST_EXPORT(kernel) static bool host_export_##kernel = host_export(#kernel, kernel);
#define HOST_EXPORT_GLOBAL(name) \
    static bool host_export_##name = (host_globals[#name] = {(void *)&name, sizeof name}, true);

inline hipError_t hipModuleLoad(hipModule_t *module, const char *) { return *module = 1, hipSuccess; }
inline hipError_t hipModuleLoadData(hipModule_t *module, const void *) { return *module = 1, hipSuccess; }
inline hipError_t hipModuleUnload(hipModule_t) { return hipSuccess; }
inline hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t, const char *name)
{
    auto found = host_functions.find(name);
    if (found == host_functions.end()) return hipErrorInvalidValue;
    return *function = &found->second, hipSuccess;
}
inline hipError_t hipModuleGetGlobal(void **address, size_t *bytes, hipModule_t, const char *name)
{
    auto found = host_globals.find(name);
    if (found == host_globals.end()) return hipErrorInvalidValue;
    return *address = found->second.first, *bytes = found->second.second, hipSuccess;
}
inline hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                        unsigned bz, unsigned shared, hipStream_t stream, void **parameters, void **)
{
    auto kernel = function->bind(parameters);
    return host_enqueue(stream, [=] { host_run(dim3(gx, gy, gz), dim3(bx, by, bz), shared, kernel); });
}
