/* An application of the message layer: two ranks of CUDA exchange memory of every kind and check every byte, while buffers end and others take
 * their addresses.
 *
 *   exchange [--hsa-first]
 *
 * Built with REDUCTIONS it reduces what it received with the layer's kernels. With `--hsa-first` the layer starts its runtime before CUDA does.
 */
#include "../programs/world.h"

#include "standin.h"
#include "transport.h"

enum { DEVICE, POOL, MANAGED, PINNED, REGISTERED, HOST, KINDS };
static const char *const names[] = {"device", "pool", "managed", "pinned", "registered", "host"};
enum { GUARD = 64, MOST = (1 << 21) + 3 };

static void *segment;
static int hsa_first;
static unsigned char *scratch;
static unsigned long messages;

#define GTL(call)                                                                                                      \
    do {                                                                                                               \
        int error_ = (call);                                                                                           \
        if (error_) DIE("%s gives %d", #call, error_);                                                                 \
    } while (0)

static unsigned char *make(int kind, size_t size) {
    CUdeviceptr pointer = 0;
    switch (kind) {
    case DEVICE: OK(cuMemAlloc(&pointer, size)); break;
    case POOL:
        OK(cuMemAllocAsync(&pointer, size, NULL));
        OK(cuStreamSynchronize(NULL));
        break;
    case MANAGED: OK(cuMemAllocManaged(&pointer, size, CU_MEM_ATTACH_GLOBAL)); break;
    case PINNED: OK(cuMemAllocHost((void **)&pointer, size)); break;
    default:
        pointer = (CUdeviceptr)malloc(size);
        if (kind == REGISTERED) OK(cuMemHostRegister((void *)pointer, size, 0));
    }
    return (unsigned char *)pointer;
}

static void end(int kind, unsigned char *pointer) {
    switch (kind) {
    case DEVICE:
    case POOL:
    case MANAGED: OK(cuMemFree((CUdeviceptr)pointer)); break;
    case PINNED: OK(cuMemFreeHost(pointer)); break;
    default:
        if (kind == REGISTERED) OK(cuMemHostUnregister(pointer));
        free(pointer);
    }
}

static unsigned char byte(uint64_t seed, size_t i) { return (unsigned char)((i + seed * 977) * 0x9e3779b97f4a7c15 >> 56); }

static void store(int kind, unsigned char *to, size_t bytes) {
    if (kind <= POOL) OK(cuMemcpyHtoD((CUdeviceptr)to, scratch, bytes));
    else memcpy(to, scratch, bytes);
}
static void load(int kind, const unsigned char *from, size_t bytes) {
    if (kind <= POOL) OK(cuMemcpyDtoH(scratch, (CUdeviceptr)from, bytes));
    else memcpy(scratch, from, bytes);
}

static void fill(int kind, unsigned char *at, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes; i++) scratch[i] = byte(seed, i);
    store(kind, at, bytes);
}
static void clear(int kind, unsigned char *at, size_t bytes) {
    memset(scratch, 0xc7, bytes + 2 * GUARD);
    store(kind, at - GUARD, bytes + 2 * GUARD);
}
static void check(int kind, const unsigned char *at, size_t bytes, uint64_t seed, const char *what) {
    size_t wrong = 0, first = 0;
    load(kind, at - GUARD, bytes + 2 * GUARD);
    for (size_t i = 0; i < bytes + 2 * GUARD; i++) {
        int inside = i >= GUARD && i < GUARD + bytes;
        if (scratch[i] != (inside ? byte(seed, i - GUARD) : 0xc7) && wrong++ == 0) first = i - GUARD;
    }
    if (wrong) DIE("%s: %zu of %zu bytes wrong, the first at %zd", what, wrong, bytes, (ssize_t)first);
    messages++;
}

/* Every kind to every kind, from addresses inside the buffers. */
static void kinds(void) {
    static const size_t sizes[] = {1, 40, 1023, 1024, 4097, 65537, (256 << 10) + 1, (1 << 20) + 7}, offsets[] = {0, 1, 4096, 4099};
    uint64_t seed = 0;
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            for (int source = 0; source < 2; source++) {
                int kind = me == source ? from : to;
                unsigned char *mine = make(kind, MOST);
                for (int s = 0; s < 8; s++) {
                    unsigned char *at = mine + GUARD + offsets[(s + (me == source)) % 4];
                    char what[100];
                    snprintf(what, sizeof what, "%zu bytes, %s to %s", sizes[s], names[from], names[to]);
                    seed++;
                    if (me == source) {
                        fill(kind, at, sizes[s], seed);
                        GTL(gtl_send(at, sizes[s]));
                    } else {
                        clear(kind, at, sizes[s]);
                        GTL(gtl_receive(at, sizes[s]));
                        check(kind, at, sizes[s], seed, what);
                    }
                }
                barrier();
                end(kind, mine);
            }
}

/* A buffer ends and another takes its address while the other rank still has the first one mapped. */
static void reuse(void) {
    enum { TURNS = 30, BYTES = 1 << 20 };
    unsigned char *last = NULL, *mine = NULL, *to = NULL;
    int again = 0;
    unsigned long stale = gtl_counts()->stale;
    if (me == 1) to = make(DEVICE, MOST);
    for (int turn = 0; turn < TURNS; turn++) {
        if (me == 0) {
            mine = make(DEVICE, BYTES + (turn % 3) * 4096);
            again += mine == last;
            fill(DEVICE, mine, BYTES, turn);
            /* Twice: the second message finds handle and mapping. */
            for (int i = 0; i < 2; i++) GTL(gtl_send(mine, BYTES));
            last = mine;
            end(DEVICE, mine);
        } else {
            for (int i = 0; i < 2; i++) {
                clear(DEVICE, to + GUARD, BYTES);
                GTL(gtl_receive(to + GUARD, BYTES));
                check(DEVICE, to + GUARD, BYTES, turn, "a buffer at an address used before");
            }
        }
    }
    if (me == 0) *(int *)world->board = again;
    barrier();
    again = *(int *)world->board;
    if (again == 0) DIE("no address was used again");
    if (me == 1 && gtl_counts()->stale < stale + again) DIE("%lu stale mappings were seen for %d reused addresses", gtl_counts()->stale - stale, again);
    if (me == 1) end(DEVICE, to);
    barrier();
}

/* More buffers than the layer keeps mapped, all alive, in an order that mixes what it finds and what it has to open. */
static void many(void) {
    enum { BUFFERS = 9, TURNS = 60, BYTES = 70001 };
    unsigned char *buffers[BUFFERS], *to = make(DEVICE, BYTES + 2 * GUARD);
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = make(DEVICE, BYTES + 999 * i);
        fill(DEVICE, buffers[i] + i, BYTES - i, 100 * me + i);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        int which = turn % 2 ? turn % 3 : turn * 5 % BUFFERS;
        for (int source = 0; source < 2; source++) {
            if (me == source) {
                GTL(gtl_send(buffers[which] + which, BYTES - which));
            } else {
                clear(DEVICE, to + GUARD, BYTES - which);
                GTL(gtl_receive(to + GUARD, BYTES - which));
                check(DEVICE, to + GUARD, BYTES - which, 100 * source + which, "one of many buffers");
            }
        }
    }
    const struct gtl_counts *counts = gtl_counts();
    if (counts->evicted == 0 || counts->found == 0) DIE("%lu mappings evicted, %lu found again", counts->evicted, counts->found);
    /* They end while the other rank has some of them mapped. */
    for (int i = 0; i < BUFFERS; i++) end(DEVICE, buffers[i]);
    end(DEVICE, to);
    barrier();
}

#ifdef REDUCTIONS
/* An all-reduce: each rank sends its vector and combines the other's with it on the device. */
static void reduce(void) {
    enum { COUNT = 100003 };
    size_t bytes = COUNT * sizeof(int32_t);
    int32_t *vector = malloc(bytes), *found = malloc(bytes);
    unsigned char *mine = make(DEVICE, bytes), *received = make(DEVICE, bytes);
    for (int operation = 0; operation < GTL_OPERATIONS; operation++) {
        for (int i = 0; i < COUNT; i++) vector[i] = (int32_t)((i + 1) * 2654435761u * (me + 3));
        OK(cuMemcpyHtoD((CUdeviceptr)mine, vector, bytes));
        if (me == 0) GTL(gtl_send(mine, bytes));
        GTL(gtl_receive(received, bytes));
        if (me == 1) GTL(gtl_send(mine, bytes));
        GTL(gtl_combine(operation, GTL_I32, received, mine, COUNT));
        OK(cuMemcpyDtoH(found, (CUdeviceptr)received, bytes));
        for (int i = 0; i < COUNT; i++) {
            int32_t a = (int32_t)((i + 1) * 2654435761u * 3), b = (int32_t)((i + 1) * 2654435761u * 4), wanted;
            switch (operation) {
            case GTL_SUM: wanted = (int32_t)((uint32_t)a + (uint32_t)b); break;
            case GTL_MIN: wanted = a < b ? a : b; break;
            case GTL_MAX: wanted = a > b ? a : b; break;
            default: wanted = (int32_t)((uint32_t)a * (uint32_t)b);
            }
            if (found[i] != wanted) DIE("reduction %d: element %d is %d, not %d", operation, i, found[i], wanted);
        }
        messages++;
        barrier();
    }
    end(DEVICE, mine);
    end(DEVICE, received);
    free(vector);
    free(found);
}
#endif

static void rank(void) {
    scratch = malloc(MOST + 2 * GUARD);
    if (!hsa_first) use_device();
    GTL(gtl_join(me, segment));
    if (hsa_first) use_device();
#ifdef REDUCTIONS
    GTL(gtl_init());
#endif
    kinds();
    reuse();
    many();
#ifdef REDUCTIONS
    reduce();
    GTL(gtl_finalize());
#endif
    barrier();
    GTL(gtl_leave());
    const struct gtl_counts *counts = gtl_counts();
    if (counts->staged == 0 || counts->mapped == 0 || counts->opened == 0) DIE("a path was not taken");
    barrier();
    if (me == 0)
        printf("%lu messages checked, here %lu sent by staging and %lu mapped: %lu mappings, %lu found again, %lu stale, %lu evicted\n", messages,
               counts->staged, counts->mapped, counts->opened, counts->found, counts->stale, counts->evicted);
}

int main(int argc, char **argv) {
    hsa_first = argc > 1 && !strcmp(argv[1], "--hsa-first");
    segment = mmap(NULL, GTL_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (segment == MAP_FAILED) return 2;
    return run_ranks(rank, 150);
}
