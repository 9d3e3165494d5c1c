/* Memory: pointer queries, allocation, host memory, handles. Built once per runtime; argument: the largest number of live blocks. */
#include "measure.h"
#include "api.h"
#include "walk.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* HIP's queries take 100 times as long. */
#ifdef HIP
enum { QUERIES = 1 << 11 };
#else
enum { QUERIES = 1 << 16 };
#endif
enum { MAX_THREADS = 8, SET = 64, SAMPLES = 5 };

static char **blocks;
static size_t live;
static char *host_memory;
static const size_t HOST_BYTES = (size_t)1 << 30;

/* ---- Pointer queries ------------------------------------------------------------------------------------------------------------ */

/* Independent queries overlap in the processor, as far as one call's instructions leave room for the next: a bare walk's loop has more in
 * flight than calls across a library. In a chain each address depends on the answer before, as what a program does with a message
 * depends on what its buffer is. */
enum pattern { HOST_MISS, WORKING_SET, ALL, ALL_CHAINED, WALK, WALK_CHAINED, CALLED_WALK, CALLED_WALK_CHAINED };

static struct query {
    enum pattern pattern;
    double ns;
    int error;
} queries[MAX_THREADS];
static pthread_barrier_t all_ready;
static volatile bool churning;

/* The table of a bare walk over the same blocks. */
static void ***walk_root;
static struct walk_block *walk_blocks;

static void walk_insert(size_t n)
{
    uintptr_t a = (uintptr_t)blocks[n];
    walk_blocks[n] = (struct walk_block){a, 256, 2, 0, n};
    void **mid = (void **)walk_root[a >> 36];
    if (!mid) mid = (void **)(walk_root[a >> 36] = calloc(1 << 12, sizeof(void *)));
    void **leaf = mid[a >> 24 & 0xfff];
    if (!leaf) leaf = mid[a >> 24 & 0xfff] = calloc(1 << 12, sizeof(void *));
    leaf[a >> 12 & 0xfff] = &walk_blocks[n];
}

/* One pass over the addresses; the device is 0 everywhere, but the processor does not know. */
static int pass(const struct query *q, char **address, uint64_t *sum)
{
    pointer_attributes attributes;
    struct walk_answer answer;
    int failed = 0;
    switch (q->pattern) {
    case WALK:
        for (int i = 0; i < QUERIES; i++) {
            const struct walk_block *found = walk_find(walk_root, (uintptr_t)address[i]);
            if (!found) failed = 1;
            else *sum += (uint64_t)(found->kind + found->device);
        }
        break;
    case WALK_CHAINED:
        for (int i = 0, device = 0; i < QUERIES; i++) {
            const struct walk_block *found = walk_find(walk_root, (uintptr_t)address[i + device]);
            if (!found) {
                failed = 1;
                continue;
            }
            *sum += (uint64_t)found->kind;
            device = found->device;
        }
        break;
    case CALLED_WALK:
        for (int i = 0; i < QUERIES; i++) {
            int error = walk_ask(&answer, address[i]);
            if (error) failed = error;
        }
        if (answer.kind != 2) failed = 1;
        break;
    case CALLED_WALK_CHAINED:
        answer.device = 0;
        for (int i = 0; i < QUERIES; i++) {
            int error = walk_ask(&answer, address[i + answer.device]);
            if (error) failed = error;
        }
        if (answer.kind != 2) failed = 1;
        break;
    case ALL_CHAINED:
        attributes.device = 0;
        for (int i = 0; i < QUERIES; i++) {
            int error = (int)GPU(PointerGetAttributes)(&attributes, address[i + attributes.device]);
            if (error) failed = error;
        }
        break;
    default:
        for (int i = 0; i < QUERIES; i++) {
            int error = (int)GPU(PointerGetAttributes)(&attributes, address[i]);
            /* HIP calls a host address an invalid value, CUDA an unregistered one: both are answers. */
            if (error && q->pattern != HOST_MISS) failed = error;
        }
    }
    return failed;
}

static void *ask(void *data)
{
    struct query *q = data;
    uint64_t state = 88172645463325252ull + (uintptr_t)q;
    /* Addresses are chosen beforehand. */
    char **address = malloc(QUERIES * sizeof *address);
    for (int i = 0; i < QUERIES; i++) {
        uint64_t r = random_next(&state);
        switch (q->pattern) {
        case HOST_MISS: address[i] = r % 8 == 0 ? (char *)&state : host_memory + r % HOST_BYTES; break;
        case WORKING_SET: address[i] = blocks[(live - 1) * (r % SET) / SET] + r / SET % 256; break;
        default: address[i] = blocks[r % live] + r / live % 256; break;
        }
    }
    uint64_t sum = 0;
    double times[SAMPLES];
    q->error = 0;
    pthread_barrier_wait(&all_ready);
    for (int sample = -1; sample < SAMPLES; sample++) {
        double start = now(CPU);
        int error = pass(q, address, &sum);
        if (error) q->error = error;
        if (sample >= 0) times[sample] = (now(CPU) - start) / QUERIES;
    }
    q->ns = median(times, SAMPLES) + (sum == 1);
    free(address);
    GPU(GetLastError)();
    return NULL;
}

static void *churn(void *unused)
{
    (void)unused;
    while (churning) {
        void *block;
        if (!GPU(Malloc)(&block, 4096)) GPU(Free)(block);
        usleep(100);
    }
    return NULL;
}

/* The time of a query, in its thread's own time, while another thread allocates and frees. */
static double ask_with(enum pattern pattern, int threads, const char *what, const char *h200)
{
    pthread_t thread[MAX_THREADS], other;
    char name[128];
    double sum = 0;
    int error = 0;
    pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
    churning = true;
    pthread_create(&other, NULL, churn, NULL);
    for (int i = 0; i < threads; i++) {
        queries[i] = (struct query){pattern, 0, 0};
        pthread_create(&thread[i], NULL, ask, &queries[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        sum += queries[i].ns;
        error |= queries[i].error;
    }
    churning = false;
    pthread_join(other, NULL);
    pthread_barrier_destroy(&all_ready);
    snprintf(name, sizeof name, "%s, %zu live, %d thread%s", what, live, threads, threads == 1 ? "" : "s");
    result(name, error, sum / threads, h200);
    return error ? 0 : sum / threads;
}

static void grow(size_t to)
{
    double start = now(CPU);
    size_t from = live;
    for (; live < to; live++) MUST(GPU(Malloc)((void **)&blocks[live], 256));
    if (to - from >= 900) {
        char name[64];
        snprintf(name, sizeof name, "malloc of 256 B, growing to %zu live (CPU)", to);
        result(name, 0, (now(CPU) - start) / (double)(to - from), "");
    }
}

/* How much longer than the first one the longest took. */
static void spread(const char *what, const double *ns, int count)
{
    double longest = 0;
    char name[128];
    for (int i = 0; i < count; i++) longest = ns[i] > longest ? ns[i] : longest;
    snprintf(name, sizeof name, "%s, slowest over 1 live and 1 thread", what);
    ratio(name, longest, ns[0]);
}

static void pointers(size_t most)
{
    const char *host = "pointer query, host address", *set = "pointer query, 64 device pointers";
    double host_ns[8], set_ns[8];
    int count = 0;
    blocks = malloc(most * sizeof *blocks);
    host_memory = mmap(NULL, HOST_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t n = 1; n <= most; n *= n == 1 ? 1000 : n == 1000 ? 100 : 10) {
        const char *tag = n == 1 ? "1 live" : n == 1000 ? "1k live" : n == 100000 ? "100k live" : NULL;
        char hit[80] = "", miss[80] = "", name[128];
        if (tag) {
            snprintf(hit, sizeof hit, "cudaPointerGetAttributes device hit, %s", tag);
            snprintf(miss, sizeof miss, "cudaPointerGetAttributes host miss, %s", tag);
        }
        grow(n);
        for (int threads = 1; threads <= MAX_THREADS; threads *= MAX_THREADS, count++) {
            host_ns[count] = ask_with(HOST_MISS, threads, host, miss);
            set_ns[count] = ask_with(WORKING_SET, threads, set, hit);
        }
        walk_root = calloc(1 << 12, sizeof *walk_root);
        walk_blocks = malloc(n * sizeof *walk_blocks);
        for (size_t i = 0; i < n; i++) walk_insert(i);
        walk_over(walk_root);
        double all = ask_with(ALL, 1, "pointer query, any device pointer", "");
        double called = ask_with(CALLED_WALK, 1, "exported bare walk, any device pointer", "");
        double walk = ask_with(WALK, 1, "inlined bare walk, any device pointer", "");
        double chained = ask_with(ALL_CHAINED, 1, "chained pointer queries, any device pointer", "");
        double called_chained = ask_with(CALLED_WALK_CHAINED, 1, "chained exported bare walks, any device pointer", "");
        double walk_chained = ask_with(WALK_CHAINED, 1, "chained inlined bare walks, any device pointer", "");
        snprintf(name, sizeof name, "pointer query over exported bare walk, %zu live", live);
        ratio(name, all, called);
        snprintf(name, sizeof name, "pointer query over inlined bare walk, %zu live", live);
        ratio(name, all, walk);
        snprintf(name, sizeof name, "chained query over chained exported bare walk, %zu live", live);
        ratio(name, chained, called_chained);
        snprintf(name, sizeof name, "chained query over chained inlined bare walk, %zu live", live);
        ratio(name, chained, walk_chained);
    }
    spread(host, host_ns, count);
    spread(set, set_ns, count);
    device_pointer base;
    size_t size;
    MEASURE(CPU, "address range, one device pointer", "cuMemGetAddressRange device hit, 100k live", 9, 10000,
            ADDRESS_RANGE(&base, &size, (device_pointer)(blocks[live / 2] + 3)));
    double start = now(CPU);
    size_t freed = live;
    while (live) MUST(GPU(Free)(blocks[--live]));
    result("free of 256 B, all of them (CPU)", 0, (now(CPU) - start) / (double)freed, "");
}

/* ---- Allocation ----------------------------------------------------------------------------------------------------------------- */

static int pair(size_t bytes)
{
    void *block = NULL;
    int error = (int)GPU(Malloc)(&block, bytes);
    return error ? error : (int)GPU(Free)(block);
}

static int async_pair(size_t bytes, gpu_stream stream)
{
    void *block = NULL;
    int error = (int)GPU(MallocAsync)(&block, bytes, stream);
    return error ? error : (int)GPU(FreeAsync)(block, stream);
}

static int host_pair(size_t bytes)
{
    void *block = NULL;
    int error = (int)GPU(MallocHost)(&block, bytes);
    return error ? error : (int)GPU(FreeHost)(block);
}

static int register_pair(void *memory, size_t bytes)
{
    int error = (int)GPU(HostRegister)(memory, bytes, 0);
    return error ? error : (int)GPU(HostUnregister)(memory);
}

static double async_ns[MAX_THREADS];
static int async_error[MAX_THREADS];
static void *async_thread(void *data)
{
    size_t me = (size_t)data;
    gpu_stream stream;
    double times[9];
    MUST(GPU(StreamCreateWithFlags)(&stream, GPU(StreamNonBlocking)));
    pthread_barrier_wait(&all_ready);
    for (int sample = -1; sample < 9 && !async_error[me]; sample++) {
        double start = now(CPU);
        for (int i = 0; i < 1000; i++) async_error[me] |= async_pair(1 << 20, stream);
        if (sample >= 0) times[sample] = (now(CPU) - start) / 1000;
    }
    async_ns[me] = async_error[me] ? 0 : median(times, 9);
    GPU(StreamSynchronize)(stream);
    /* The stream stays: HIP 5.2 does not come back from destroying one that freed memory. */
    return NULL;
}

static void async_with(int threads)
{
    pthread_t thread[MAX_THREADS];
    char name[128];
    double sum = 0;
    int error = 0;
    pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
    for (size_t i = 0; i < (size_t)threads; i++) pthread_create(&thread[i], NULL, async_thread, (void *)i);
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        sum += async_ns[i];
        error |= async_error[i];
    }
    pthread_barrier_destroy(&all_ready);
    snprintf(name, sizeof name, "mallocAsync+freeAsync of 1 MiB, %d thread%s (CPU)", threads, threads == 1 ? "" : "s");
    result(name, error, sum / threads, "cudaMallocAsync+cudaFreeAsync 1 MiB, threshold max, no sync");
}

static void allocations(void)
{
    /* Another block stays, as programs have it. */
    void *kept;
    MUST(GPU(Malloc)(&kept, 256));
    MEASURE(WALL, "malloc+free of 256 B", "cudaMalloc+cudaFree 256 B, block kept alive", 21, 100, pair(256));
    MEASURE(WALL, "malloc+free of 1 MiB", "cudaMalloc+cudaFree 1 MiB", 21, 20, pair(1 << 20));
    MEASURE(WALL, "malloc+free of 64 MiB", "cudaMalloc+cudaFree 64 MiB", 21, 5, pair(64 << 20));
    MEASURE(CPU, "malloc+free of 256 B (CPU)", "", 21, 100, pair(256));
    MEASURE(CPU, "malloc+free of 1 MiB (CPU)", "", 21, 20, pair(1 << 20));
    MEASURE(CPU, "malloc+free of 64 MiB (CPU)", "", 21, 5, pair(64 << 20));
    async_with(1);
    async_with(MAX_THREADS);
    MEASURE(WALL, "host alloc+free of 4 KiB", "cudaHostAlloc+cudaFreeHost 4 KiB", 21, 10, host_pair(4096));
    MEASURE(WALL, "host alloc+free of 1 MiB", "cudaHostAlloc+cudaFreeHost 1 MiB", 21, 5, host_pair(1 << 20));
    char *pages = aligned_alloc(4096, 1 << 20);
    memset(pages, 1, 1 << 20);
    MEASURE(WALL, "host register+unregister of 4 KiB", "cudaHostRegister+Unregister 4 KiB", 21, 10, register_pair(pages, 4096));
    MEASURE(WALL, "host register+unregister of 1 MiB", "cudaHostRegister+Unregister 1 MiB", 21, 5, register_pair(pages, 1 << 20));
    size_t available, total;
    MEASURE(CPU, "memGetInfo (CPU)", "cudaMemGetInfo", 21, 100, GPU(MemGetInfo)(&available, &total));
    MUST(GPU(Free)(kept));
}

/* ---- Handles -------------------------------------------------------------------------------------------------------------------- */

#ifndef HIP
static int vmm_pair(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    int error = (int)cuMemCreate(&handle, 2 << 20, &properties, 0);
    return error ? error : (int)cuMemRelease(handle);
}
#else
static int vmm_pair(void)
{
    hipMemGenericAllocationHandle_t handle;
    hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
    int error = (int)hipMemCreate(&handle, 2 << 20, &properties, 0);
    return error ? error : (int)hipMemRelease(handle);
}
#endif

static GPU(IpcMemHandle_t) handle;
static int open_and_close(void)
{
    void *block = NULL;
    int error = (int)GPU(IpcOpenMemHandle)(&block, handle, GPU(IpcMemLazyEnablePeerAccess));
    return error ? error : (int)GPU(IpcCloseMemHandle)(block);
}

/* The exporter is the child; it ends when its input does. */
static void exporter(int in, int out)
{
    void *block;
    char byte;
    MUST(GPU(Malloc)(&block, 64 << 20));
    MUST(GPU(IpcGetMemHandle)(&handle, block));
    if (write(out, &handle, sizeof handle) != sizeof handle) exit(1);
    while (read(in, &byte, 1) > 0) {}
    exit(0);
}

static void handles(int in, int out)
{
    void *mine, *opened;
    GPU(IpcMemHandle_t) got;
    MUST(GPU(Malloc)(&mine, 1 << 20));
    MEASURE(CPU, "ipcGetMemHandle, again (CPU)", "cudaIpcGetMemHandle", 21, 20, GPU(IpcGetMemHandle)(&got, mine));
    MUST(GPU(Free)(mine));
    if (read(in, &handle, sizeof handle) != sizeof handle) exit(1);
    MEASURE(WALL, "ipcOpenMemHandle+close of 64 MiB", "cudaIpcOpenMemHandle+Close (64 MiB)", 11, 5, open_and_close());
    MUST(GPU(IpcOpenMemHandle)(&opened, handle, GPU(IpcMemLazyEnablePeerAccess)));
    MEASURE(CPU, "ipcOpenMemHandle+close, already open (CPU)", "cudaIpcOpenMemHandle+Close, already open", 21, 50, open_and_close());
    MUST(GPU(IpcCloseMemHandle)(opened));
    close(out);
    MEASURE(WALL, "memCreate+memRelease of 2 MiB", "cuMemCreate+cuMemRelease 2 MiB", 11, 5, vmm_pair());
}

int main(int argc, char **argv)
{
    int there[2], back[2];
    if (pipe(there) || pipe(back)) return 1;
    /* Before either process touches the device. */
    if (fork() == 0) {
        close(there[1]);
        close(back[0]);
        exporter(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    MUST(GPU(SetDevice)(0));
    MUST(GPU(Free)(NULL));
    allocations();
    handles(back[0], there[1]);
    pointers(argc > 1 ? strtoul(argv[1], NULL, 0) : 100000);
    return wait(NULL) < 0;
}
