/* Every kind of memory under eight threads: allocated, filled, asked about, checked and freed at random, while a second process exports blocks that
   the threads open, check, answer and close.

     memory_stress [--seconds N] [--cycles N] [--threads N] [--seed N] [--kind NAME]

   The time is divided into cycles. After each everything is freed and the pools are trimmed; then free memory, as ROCr counts it (as we do where
   ROCr is older than 5.4), descriptors and mappings of both processes are what they were after the first cycle.

   What is checked all the time: each block's data; type, id, base and size at any byte of it, also by other threads while it lives; that a freed address
   is unknown or somebody else's with another id; that ids are never given twice to one thread's blocks; that registering twice is refused. */
#include "world.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum { THREADS = 8, OBJECTS = 12, WORDS = 1024 };
/* ROCr keeps a few of the blocks that it cuts small allocations from. */
static const size_t KEPT_BY_ROCR = 16 << 20;

static int seconds = 60, cycles = 6, threads = THREADS;
static unsigned first_seed = 1;
static bool virtual_memory;
static size_t granularity;
static CUmemoryPool default_pool;

/* ---- What the processes share: a block per thread, exported by rank 0 --------------------------------------------------------------------- */

enum turn { EMPTY, EXPORTED, ANSWERED };

struct exported {
    int turn;
    CUipcMemHandle handle;
    size_t size;
    uint32_t seed;
};

static struct board {
    struct exported block[THREADS];
    int workers_done;
    unsigned long opened;
} *board;

/* ---- Random numbers and patterns ---------------------------------------------------------------------------------------------------------- */

struct random { uint64_t state; };

static uint64_t next(struct random *random) {
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    return random->state ^= random->state << 17;
}

static uint32_t below(struct random *random, uint32_t bound) { return (uint32_t)(next(random) >> 20) % bound; }

/* Mostly small, at times some megabytes; a multiple of 4. */
static size_t some_size(struct random *random) {
    static const uint32_t most[] = {64, 1 << 10, 1 << 14, 1 << 14, 1 << 18, 1 << 18, 3 << 20, 9 << 20};
    return (1 + below(random, most[below(random, 8)] / 4)) * 4;
}

static uint32_t word_of(uint32_t seed, size_t index) { return seed * 2654435761u + (uint32_t)index * 40503u; }

/* The part of a block that carries its pattern: all of a small one, one place of a large one. */
static size_t sample(uint32_t seed, size_t size, size_t *first) {
    size_t words = size / 4, count = words < WORDS ? words : WORDS;
    *first = words == count ? 0 : seed * 2246822519u % (words - count + 1);
    return count;
}

/* ---- One thread's memory ------------------------------------------------------------------------------------------------------------------ */

enum kind { DEVICE, PITCHED, ASYNC, FROM_POOL, HOST, REGISTERED, MANAGED, MAPPED, KINDS };
static const char *const kind_names[] = {"device", "pitched", "async", "from-pool", "host", "registered", "managed", "mapped"};
/* The kind that all objects have; KINDS: any. */
static enum kind only = KINDS;

struct object {
    enum kind kind;
    CUdeviceptr at;
    size_t size;
    uint32_t seed;
    uint64_t id;
    /* Of host memory. */
    char *host;
    void *pages;
    size_t page_bytes;
    /* Of a mapping: what was reserved, and where the memory lies a second time. */
    CUdeviceptr reserved, twin;
    CUmemGenericAllocationHandle handle;
};

struct thread {
    pthread_t thread;
    int number;
    struct random random;
    CUstream stream;
    CUmemoryPool pool;
    uint64_t last_id;
    unsigned long steps;
    struct object objects[OBJECTS];
    /* For the others: where an object lies, and its id while it lives. */
    struct { CUdeviceptr at; size_t size; uint64_t id; } seen[OBJECTS];
};

static struct thread all[THREADS];
static time_t cycle_end;

static void put(struct thread *t, const struct object *object, CUdeviceptr to) {
    uint32_t words[WORDS];
    size_t first, count = sample(object->seed, object->size, &first);
    for (size_t i = 0; i < count; i++) words[i] = word_of(object->seed, first + i);
    OK(cuMemcpyHtoDAsync(to + first * 4, words, count * 4, t->stream));
    OK(cuStreamSynchronize(t->stream));
}

static void check(struct thread *t, const struct object *object, CUdeviceptr from) {
    uint32_t words[WORDS];
    size_t first, count = sample(object->seed, object->size, &first);
    memset(words, 0xee, sizeof words);
    OK(cuMemcpyDtoHAsync(words, from + first * 4, count * 4, t->stream));
    OK(cuStreamSynchronize(t->stream));
    for (size_t i = 0; i < count; i++)
        if (words[i] != word_of(object->seed, first + i))
            DIE("thread %d, step %lu: word %zu of %zu bytes of kind %d is %#x, not %#x", t->number, t->steps, first + i, object->size,
                object->kind, words[i], word_of(object->seed, first + i));
}

static uint64_t id_at(CUdeviceptr address) {
    uint64_t id = 0;
    CUresult result = cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) DIE("the id at %#llx gives %d", address, (int)result);
    return result == CUDA_SUCCESS ? id : 0;
}

static bool on_host(const struct object *object) { return object->kind == HOST || object->kind == REGISTERED; }

/* Asks about a living object, at any byte of it. */
static void ask(struct thread *t, const struct object *object) {
    CUdeviceptr inside = object->at + next(&t->random) % object->size, base = 0;
    size_t size = 0;
    unsigned type = 0, managed = 9;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &managed};
    OK(cuPointerGetAttributes(2, wanted, values, inside));
    if (type != (on_host(object) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE) || managed != (object->kind == MANAGED))
        DIE("kind %d has type %u, managed %u", object->kind, type, managed);
    OK(cuMemGetAddressRange(&base, &size, inside));
    CUdeviceptr start = object->kind == REGISTERED ? (CUdeviceptr)object->host : object->at;
    if (base != start || (object->kind != PITCHED && size != object->size))
        DIE("kind %d lies at %#llx+%zu, not %#llx+%zu", object->kind, base, size, start, object->size);
    if (id_at(inside) != object->id) DIE("kind %d has another id", object->kind);
    if (object->kind != PITCHED && id_at(object->at + object->size) == object->id) DIE("kind %d goes on behind its end", object->kind);
}

/* Asks about another thread's object: if it lived all the time, the answer is its id. */
static void ask_about_others(struct thread *t) {
    struct thread *other = &all[below(&t->random, (uint32_t)threads)];
    size_t slot = below(&t->random, OBJECTS);
    uint64_t id = __atomic_load_n(&other->seen[slot].id, __ATOMIC_ACQUIRE);
    if (!id) return;
    CUdeviceptr at = __atomic_load_n(&other->seen[slot].at, __ATOMIC_ACQUIRE);
    size_t size = __atomic_load_n(&other->seen[slot].size, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&other->seen[slot].id, __ATOMIC_ACQUIRE) != id) return;
    uint64_t found = id_at(at + next(&t->random) % size);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (found != id && __atomic_load_n(&other->seen[slot].id, __ATOMIC_ACQUIRE) == id)
        DIE("thread %d's memory at %#llx has id %llu, not %llu", other->number, at, (unsigned long long)found, (unsigned long long)id);
}

static void map(struct thread *t, struct object *object) {
    CUmemAllocationProp properties = {0};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    object->size = granularity * (1 + below(&t->random, 2));
    OK(cuMemCreate(&object->handle, object->size, &properties, 0));
    OK(cuMemAddressReserve(&object->reserved, 2 * object->size, 0, 0, 0));
    object->at = object->reserved;
    OK(cuMemMap(object->at, object->size, 0, object->handle, 0));
    if (below(&t->random, 2)) {
        /* The same memory a second time, as another process would have it. */
        CUmemGenericAllocationHandle same = object->handle;
        int descriptor = -1;
        bool travelled = below(&t->random, 2);
        if (travelled) {
            OK(cuMemExportToShareableHandle(&descriptor, object->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
            OK(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
            close(descriptor);
        }
        object->twin = object->reserved + object->size;
        OK(cuMemMap(object->twin, object->size, 0, same, 0));
        if (travelled) OK(cuMemRelease(same));
        OK(cuMemSetAccess(object->twin, object->size, &access, 1));
    }
    OK(cuMemSetAccess(object->at, object->size, &access, 1));
}

static void make(struct thread *t, size_t slot) {
    struct object *object = &t->objects[slot];
    enum kind kind = only != KINDS ? only : below(&t->random, virtual_memory ? KINDS : MAPPED);
    *object = (struct object){.kind = kind, .size = some_size(&t->random)};
    object->seed = (uint32_t)next(&t->random);
    switch (object->kind) {
    case DEVICE: OK(cuMemAlloc(&object->at, object->size)); break;
    case PITCHED: {
        size_t pitch;
        OK(cuMemAllocPitch(&object->at, &pitch, object->size < 4096 ? object->size : 4096, 1 + below(&t->random, 8), 4));
        object->size = object->size < 4096 ? object->size : 4096;
        break;
    }
    case ASYNC: OK(cuMemAllocAsync(&object->at, object->size, t->stream)); break;
    case FROM_POOL: OK(cuMemAllocFromPoolAsync(&object->at, object->size, t->pool, t->stream)); break;
    case MANAGED: OK(cuMemAllocManaged(&object->at, object->size, CU_MEM_ATTACH_GLOBAL)); break;
    case HOST:
        OK(cuMemHostAlloc((void **)&object->host, object->size, below(&t->random, 8)));
        OK(cuMemHostGetDevicePointer(&object->at, object->host, 0));
        break;
    case REGISTERED:
        object->page_bytes = object->size + 4096;
        object->pages = mmap(NULL, object->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (object->pages == MAP_FAILED) DIE("no %zu bytes", object->page_bytes);
        object->host = (char *)object->pages + below(&t->random, 1024) * 4;
        OK(cuMemHostRegister(object->host, object->size, below(&t->random, 2) ? CU_MEMHOSTREGISTER_PORTABLE : 0));
        GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(object->host + object->size / 2 / 4 * 4, 4, 0));
        OK(cuMemHostGetDevicePointer(&object->at, object->host, 0));
        break;
    default: map(t, object);
    }
    object->id = id_at(object->at);
    if (object->id <= t->last_id && object->kind != MAPPED && object->kind != ASYNC && object->kind != FROM_POOL)
        DIE("kind %d: id %llu after %llu", object->kind, (unsigned long long)object->id, (unsigned long long)t->last_id);
    if (object->id > t->last_id) t->last_id = object->id;
    put(t, object, object->at);
    t->seen[slot].at = object->at;
    t->seen[slot].size = object->size;
    __atomic_store_n(&t->seen[slot].id, object->id, __ATOMIC_RELEASE);
}

static void end(struct thread *t, size_t slot) {
    struct object *object = &t->objects[slot];
    ask(t, object);
    check(t, object, object->twin ? object->twin : object->at);
    if (object->host) {
        size_t first, count = sample(object->seed, object->size, &first);
        for (size_t i = 0; i < count; i++)
            if (((uint32_t *)object->host)[first + i] != word_of(object->seed, first + i)) DIE("the host sees other data in kind %d", object->kind);
    }
    __atomic_store_n(&t->seen[slot].id, 0, __ATOMIC_SEQ_CST);
    switch (object->kind) {
    case DEVICE: case PITCHED: case MANAGED: OK(cuMemFree(object->at)); break;
    case ASYNC: case FROM_POOL:
        if (below(&t->random, 8)) OK(cuMemFreeAsync(object->at, t->stream));
        else OK(cuMemFree(object->at));
        break;
    case HOST: OK(cuMemFreeHost(object->host)); break;
    case REGISTERED: OK(cuMemHostUnregister(object->host)); break;
    default:
        OK(cuMemUnmap(object->at, object->size));
        if (object->twin) OK(cuMemUnmap(object->twin, object->size));
        OK(cuMemRelease(object->handle));
        OK(cuMemAddressFree(object->reserved, 2 * object->size));
    }
    if (id_at(object->at) == object->id) DIE("kind %d is known after its end", object->kind);
    if (object->kind == REGISTERED) munmap(object->pages, object->page_bytes);
    object->size = 0;
}

/* Opens what rank 0 exported for this thread, checks it, leaves an answer and closes it. */
static void import(struct thread *t) {
    struct exported *block = &board->block[t->number];
    if (__atomic_load_n(&block->turn, __ATOMIC_ACQUIRE) != EXPORTED) return;
    CUdeviceptr at, again = 0, base;
    size_t size;
    bool twice = below(&t->random, 3) == 0;
    OK(cuIpcOpenMemHandle(&at, block->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    if (twice) {
        OK(cuIpcOpenMemHandle(&again, block->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        if (again != at) DIE("opened again at %#llx, not %#llx", again, at);
    }
    OK(cuMemGetAddressRange(&base, &size, at + block->size / 2));
    if (base != at || size != block->size) DIE("imported %#llx+%zu, not %#llx+%zu", base, size, at, block->size);
    struct object seen = {.kind = DEVICE, .size = block->size, .seed = block->seed};
    check(t, &seen, at);
    seen.seed = ~seen.seed;
    put(t, &seen, at);
    OK(cuIpcCloseMemHandle(at));
    if (twice) OK(cuIpcCloseMemHandle(at));
    __atomic_add_fetch(&board->opened, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&block->turn, ANSWERED, __ATOMIC_RELEASE);
}

static void *work(void *data) {
    struct thread *t = data;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemPoolCreate(&t->pool, &properties));
    for (; time(NULL) < cycle_end; t->steps++) {
        size_t slot = below(&t->random, OBJECTS);
        if (!t->objects[slot].size) make(t, slot);
        else if (below(&t->random, 2)) end(t, slot);
        else ask(t, &t->objects[slot]);
        for (int i = 0; i < 20; i++) ask_about_others(t);
        if (below(&t->random, 4) == 0) import(t);
        if (below(&t->random, 64) == 0) OK(cuMemPoolTrimTo(below(&t->random, 2) ? t->pool : default_pool, 0));
    }
    for (size_t slot = 0; slot < OBJECTS; slot++)
        if (t->objects[slot].size) end(t, slot);
    OK(cuMemPoolDestroy(t->pool));
    OK(cuStreamDestroy(t->stream));
    return NULL;
}

/* ---- The exporter ------------------------------------------------------------------------------------------------------------------------- */

static void export_blocks(struct thread *t) {
    struct object blocks[THREADS] = {0};
    OK(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
    while (!__atomic_load_n(&board->workers_done, __ATOMIC_ACQUIRE)) {
        bool idle = true;
        for (int i = 0; i < threads; i++) {
            struct exported *block = &board->block[i];
            int turn = __atomic_load_n(&block->turn, __ATOMIC_ACQUIRE);
            if (turn == EXPORTED) continue;
            idle = false;
            if (turn == ANSWERED) {
                blocks[i].seed = ~blocks[i].seed;
                check(t, &blocks[i], blocks[i].at);
                if (below(&t->random, 3)) {
                    OK(cuMemFree(blocks[i].at));
                    blocks[i].size = 0;
                }
            }
            if (!blocks[i].size) {
                blocks[i].size = some_size(&t->random);
                OK(cuMemAlloc(&blocks[i].at, blocks[i].size));
            }
            blocks[i].seed = (uint32_t)next(&t->random);
            put(t, &blocks[i], blocks[i].at);
            OK(cuIpcGetMemHandle(&block->handle, blocks[i].at));
            block->size = blocks[i].size;
            block->seed = blocks[i].seed;
            __atomic_store_n(&block->turn, EXPORTED, __ATOMIC_RELEASE);
        }
        if (idle) usleep(200);
    }
    for (int i = 0; i < threads; i++) {
        if (blocks[i].size) OK(cuMemFree(blocks[i].at));
        board->block[i].turn = EMPTY;
    }
    OK(cuStreamDestroy(t->stream));
}

/* ---- What is left --------------------------------------------------------------------------------------------------------------------------- */

struct left { size_t available; int descriptors, mappings; };

static struct left count_left(void) {
    struct left left = {0};
    size_t total;
    char line[512];
    OK(cuCtxSynchronize());
    OK(cuMemPoolTrimTo(default_pool, 0));
    OK(cuMemGetInfo(&left.available, &total));
    left.descriptors = open_descriptors();
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) left.mappings++;
    fclose(maps);
    return left;
}

static void body(void) {
    struct left first = {0};
    int supported = 0;
    use_device();
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    virtual_memory = supported;
    if (virtual_memory) {
        CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
        OK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    }
    OK(cuDeviceGetDefaultMemPool(&default_pool, device));
    for (int i = 0; i < threads; i++) all[i] = (struct thread){.number = i, .random = {(first_seed + (uint64_t)i) * 0x9e3779b97f4a7c15 | 1}};
    struct thread exporter = {.number = -1, .random = {first_seed * 0xda942042e4dd58b5 | 1}};
    for (int cycle = 0; cycle < cycles; cycle++) {
        unsigned long steps = 0;
        barrier();
        if (me == 0) {
            export_blocks(&exporter);
        } else {
            cycle_end = time(NULL) + seconds / cycles;
            for (int i = 0; i < threads; i++) pthread_create(&all[i].thread, NULL, work, &all[i]);
            for (int i = 0; i < threads; i++) pthread_join(all[i].thread, NULL), steps += all[i].steps;
            __atomic_store_n(&board->workers_done, 1, __ATOMIC_RELEASE);
        }
        /* All of both processes is freed, also what one of them had mapped of the other. */
        barrier();
        struct left now = count_left();
        if (me) printf("cycle %d: %lu steps, %lu imports; ", cycle, steps, board->opened);
        printf("rank %d: %zu bytes free, %d descriptors, %d mappings\n", me, now.available, now.descriptors, now.mappings);
        fflush(stdout);
        if (cycle == 0) first = now;
        if (now.available + KEPT_BY_ROCR < first.available) DIE("%zu bytes less are free than after the first cycle", first.available - now.available);
        if (now.descriptors > first.descriptors) DIE("%d descriptors, %d after the first cycle", now.descriptors, first.descriptors);
        barrier();
        if (me) {
            board->workers_done = 0;
            if (board->opened == 0) DIE("nothing was imported: the test shows nothing");
        }
        barrier();
    }
    if (me) printf("memory_stress: ok, %d threads, %d cycles, %lu imports\n", threads, cycles, board->opened);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        int value = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--kind")) {
            for (only = 0; only < KINDS && strcmp(kind_names[only], argv[i + 1]);) only++;
            if (only == KINDS) return 2;
        } else if (!strcmp(argv[i], "--seconds")) seconds = value;
        else if (!strcmp(argv[i], "--cycles")) cycles = value;
        else if (!strcmp(argv[i], "--threads")) threads = value;
        else if (!strcmp(argv[i], "--seed")) first_seed = (unsigned)value;
        else return 2;
    }
    if (threads < 1 || threads > THREADS || cycles < 2 || seconds < cycles) return 2;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) return 2;
    return run_ranks(body, (unsigned)seconds * 2 + 300);
}
