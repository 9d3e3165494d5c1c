/* Programs that open the libraries by name, as plugins do, and close them again with work on its way and threads running: nothing crashes,
   what was enqueued is done, and whoever opens the libraries anew finds everything as it was. Not linked to any of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "check.h"

/* The few functions that the program knows, found in whatever library is open. */
static struct driver {
    void *library;
    CUresult (*init)(unsigned);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*set_current)(CUcontext);
    CUresult (*allocate)(CUdeviceptr *, size_t);
    CUresult (*host_allocate)(void **, size_t);
    CUresult (*stream_create)(CUstream *, unsigned);
    CUresult (*fill)(CUdeviceptr, unsigned, size_t, CUstream);
    CUresult (*down)(void *, CUdeviceptr, size_t, CUstream);
    CUresult (*wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    CUresult (*host_function)(CUstream, CUhostFn, void *);
    CUresult (*synchronize)(CUstream);
    CUresult (*query)(CUstream);
} driver;

static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (!function) DIE("%s is not there", name);
    return function;
}

static void open_driver(void) {
    driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver.library) DIE("%s", dlerror());
    driver.init = find(driver.library, "cuInit");
    driver.retain = find(driver.library, "cuDevicePrimaryCtxRetain");
    driver.set_current = find(driver.library, "cuCtxSetCurrent");
    driver.allocate = find(driver.library, "cuMemAlloc_v2");
    driver.host_allocate = find(driver.library, "cuMemAllocHost_v2");
    driver.stream_create = find(driver.library, "cuStreamCreate");
    driver.fill = find(driver.library, "cuMemsetD32Async");
    driver.down = find(driver.library, "cuMemcpyDtoHAsync_v2");
    driver.wait_value = find(driver.library, "cuStreamWaitValue32_v2");
    driver.host_function = find(driver.library, "cuLaunchHostFunc");
    driver.synchronize = find(driver.library, "cuStreamSynchronize");
    driver.query = find(driver.library, "cuStreamQuery");
}

static void close_driver(void) {
    if (dlclose(driver.library)) DIE("dlclose: %s", dlerror());
    memset(&driver, 0, sizeof driver);
}

enum { WORDS = 1 << 16 };
static int called;
static void CUDA_CB note(void *unused) { (void)unused; __atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST); }

/* Two streams: one waits for a word of pinned memory, with a fill, a copy and a host function behind; one is free. */
static CUstream held, free_stream;
static CUdeviceptr memory;
static uint32_t *pinned;

static void enqueue(uint32_t value) {
    pinned[WORDS] = 0;
    memset(pinned, 0, WORDS * 4);
    OK(driver.wait_value(held, (CUdeviceptr)&pinned[WORDS], value, CU_STREAM_WAIT_VALUE_EQ));
    OK(driver.fill(memory, value, WORDS, held));
    OK(driver.down(pinned, memory, WORDS * 4, held));
    OK(driver.host_function(held, note, NULL));
}

static void start(void) {
    CUcontext context;
    OK(driver.init(0));
    OK(driver.retain(&context, 0));
    OK(driver.set_current(context));
    OK(driver.allocate(&memory, WORDS * 4));
    OK(driver.host_allocate((void **)&pinned, WORDS * 4 + 64));
    OK(driver.stream_create(&held, CU_STREAM_NON_BLOCKING));
    OK(driver.stream_create(&free_stream, CU_STREAM_NON_BLOCKING));
}

/* What stood behind the wait is done although nobody has the library open. */
static void arrives(uint32_t value, int calls) {
    __atomic_store_n(&pinned[WORDS], value, __ATOMIC_RELEASE);
    for (int i = 0; i < 20000 && __atomic_load_n(&called, __ATOMIC_ACQUIRE) < calls; i++) usleep(1000);
    if (called != calls) DIE("%d host functions were called, not %d", called, calls);
    for (int i = 0; i < WORDS; i++)
        if (pinned[i] != value) DIE("word %d is %#x, not %#x", i, pinned[i], value);
}

static void *closes(void *runtime) {
    /* A thread that has state of its own ends after the library was closed. */
    int (*get_last_error)(void) = (int (*)(void))find(runtime, "cudaGetLastError");
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))find(runtime, "cudaMalloc");
    void *unused;
    if (allocate(&unused, (size_t)1 << 60) != 2 || get_last_error() != 2) DIE("the runtime allocates an exbibyte");
    OK(allocate(&unused, 1024));
    dlclose(runtime);
    return NULL;
}

static void closed_with_work(void) {
    open_driver();
    start();
    enqueue(0x11111111);
    close_driver();
    arrives(0x11111111, 1);
    /* Opened anew it is the same library with the same state: handles and memory are still good, on this thread too. */
    open_driver();
    OK(driver.init(0));
    enqueue(0x22222222);
    if (driver.query(held) != CUDA_ERROR_NOT_READY) DIE("a stream that waits is ready");
    OK(driver.fill(memory + 4, 7, 1, free_stream));
    OK(driver.synchronize(free_stream));
    close_driver();
    arrives(0x22222222, 2);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
        if (!runtime) DIE("%s", dlerror());
        if (pthread_create(&thread, NULL, closes, runtime)) DIE("no thread");
        pthread_join(thread, NULL);
    }
    open_driver();
    enqueue(0x33333333);
    arrives(0x33333333, 3);
    OK(driver.synchronize(held));
    OK(driver.query(held));
}

/* Ends with the library closed and a stream that will wait for ever. */
static void ends_closed(void) {
    open_driver();
    start();
    enqueue(0x44444444);
    close_driver();
}

static void in_child(const char *name, void (*scene)(void), int wanted) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        scene();
        exit(7);
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) DIE("%s: the process ended with %#x", name, status);
}

int main(void) {
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) DIE("the program is linked to the driver");
    in_child("closed with work on its way", closed_with_work, 7);
    in_child("ends with the library closed", ends_closed, 7);
    puts("libraries that are closed finish what they were given, and open again as they were");
    return 0;
}
