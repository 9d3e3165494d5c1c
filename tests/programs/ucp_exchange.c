/* Two ranks exchange memory of every kind through UCP, the layer that MPI libraries stand on, and check every byte.
 *
 *   ucp_exchange [--kinds K,K...] [--operations O,O...] [--sizes N,N...] [--all-offsets]
 *
 * kinds: device managed pinned registered host. For each pair of kinds (one on each side), operation (tag, am, put, get) and
 * size, rank 0 and rank 1 take turns at each end. Buffers are new for each pair, so that what UCX keeps about an address (its kind, its IPC mapping)
 * must be found stale. Bytes around a message must stay as they were.
 */
#include "world.h"

#include <ucp/api/ucp.h>

enum { DEVICE, MANAGED, PINNED, REGISTERED, HOST, KINDS };
static const char *const kind_names[] = {"device", "managed", "pinned", "registered", "host"};
enum { TAG, AM, PUT, GET, OPERATIONS };
static const char *const operation_names[] = {"tag", "am", "put", "get"};

enum { GUARD = 128, ROOM = 8192, AM_ID = 7 };

static int kinds[KINDS] = {DEVICE, MANAGED, PINNED, REGISTERED, HOST}, kind_count = KINDS;
static int operations[OPERATIONS] = {TAG, AM, PUT, GET}, operation_count = OPERATIONS;
static size_t sizes[64] = {1, 7, 8, 63, 513, 4097, 65536, 262147}, size_count = 8, largest;
static int all_offsets;
/* Of the sender's and the receiver's message in their buffers. */
static const size_t offsets[][2] = {{0, 0}, {1, 0}, {3, 8}, {4095, 17}};

#define UCS(call)                                                                          \
    do {                                                                                   \
        ucs_status_t status_ = (call);                                                     \
        if (status_ != UCS_OK) DIE("%s gives %s", #call, ucs_status_string(status_));      \
    } while (0)

static ucp_context_h ucp;
static ucp_worker_h worker;
static ucp_ep_h peer;

/* What the ranks tell each other. */
struct slot {
    size_t length;
    uint64_t address;
    unsigned char bytes[8192];
};
static struct slot *slot_of(int rank) { return (struct slot *)world->board + rank; }

/* A barrier during which UCX goes on: a rank may serve the other's puts and gets. */
static void meet(void) {
    static int sense = 0;
    sense = !sense;
    if (__atomic_add_fetch(&world->arrived[sense], 1, __ATOMIC_ACQ_REL) == ranks) {
        __atomic_store_n(&world->arrived[sense], 0, __ATOMIC_RELEASE);
        __atomic_store_n(&world->sense, sense, __ATOMIC_RELEASE);
        return;
    }
    for (unsigned turn = 0; __atomic_load_n(&world->sense, __ATOMIC_ACQUIRE) != sense; turn++) {
        if (__atomic_load_n(&world->failed, __ATOMIC_ACQUIRE)) _exit(1);
        if (!ucp_worker_progress(worker) && turn % 64 == 63) usleep(20);
    }
}

static void finish(void *request) {
    ucs_status_t status;
    if (request == NULL) return;
    if (UCS_PTR_IS_ERR(request)) DIE("%s", ucs_status_string(UCS_PTR_STATUS(request)));
    for (unsigned turn = 0; (status = ucp_request_check_status(request)) == UCS_INPROGRESS; turn++) {
        if (__atomic_load_n(&world->failed, __ATOMIC_ACQUIRE)) _exit(1);
        if (!ucp_worker_progress(worker) && turn % 64 == 63) usleep(20);
    }
    ucp_request_free(request);
    UCS(status);
}

/* An active message that came, for the receiver to take. */
static void *arrived;
static size_t arrived_length;
static ucs_status_t on_message(void *argument, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *parameters) {
    (void)argument, (void)header, (void)header_length;
    if (!(parameters->recv_attr & (UCP_AM_RECV_ATTR_FLAG_RNDV | UCP_AM_RECV_ATTR_FLAG_DATA))) DIE("an active message that cannot be kept");
    if (arrived) DIE("two active messages");
    arrived = data;
    arrived_length = length;
    return UCS_INPROGRESS;
}

static void connect_ranks(void) {
    ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM};
    ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = AM_ID,
        .cb = on_message,
        .flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA,
    };
    ucp_config_t *configuration;
    ucp_address_t *address;
    size_t length;
    UCS(ucp_config_read(NULL, NULL, &configuration));
    UCS(ucp_init(&parameters, configuration, &ucp));
    ucp_config_release(configuration);
    UCS(ucp_worker_create(ucp, &single, &worker));
    UCS(ucp_worker_set_am_recv_handler(worker, &handler));
    UCS(ucp_worker_get_address(worker, &address, &length));
    if (length > sizeof slot_of(me)->bytes) DIE("an address of %zu bytes", length);
    memcpy(slot_of(me)->bytes, address, length);
    ucp_worker_release_address(worker, address);
    meet();
    ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (ucp_address_t *)slot_of(!me)->bytes};
    UCS(ucp_ep_create(worker, &to, &peer));
    meet();
}

static void disconnect(void) {
    ucp_request_param_t none = {0};
    finish(ucp_ep_flush_nbx(peer, &none));
    meet();
    finish(ucp_ep_close_nbx(peer, &none));
    meet();
    ucp_worker_destroy(worker);
    ucp_cleanup(ucp);
}

struct buffer {
    int kind;
    unsigned char *data;
    size_t size;
};

static struct buffer make(int kind, size_t size) {
    struct buffer buffer = {kind, NULL, size};
    CUdeviceptr pointer = 0;
    switch (kind) {
    case DEVICE: OK(cuMemAlloc(&pointer, size)); break;
    case MANAGED: OK(cuMemAllocManaged(&pointer, size, CU_MEM_ATTACH_GLOBAL)); break;
    case PINNED: OK(cuMemAllocHost((void **)&pointer, size)); break;
    default:
        pointer = (CUdeviceptr)malloc(size);
        if (kind == REGISTERED) OK(cuMemHostRegister((void *)pointer, size, 0));
    }
    buffer.data = (unsigned char *)pointer;
    return buffer;
}

static void end(struct buffer buffer) {
    switch (buffer.kind) {
    case DEVICE:
    case MANAGED: OK(cuMemFree((CUdeviceptr)buffer.data)); break;
    case PINNED: OK(cuMemFreeHost(buffer.data)); break;
    default:
        if (buffer.kind == REGISTERED) OK(cuMemHostUnregister(buffer.data));
        free(buffer.data);
    }
}

static unsigned char *scratch;

static uint64_t word(uint64_t seed, uint64_t index) {
    uint64_t x = seed * 0x9e3779b97f4a7c15 + index;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 27;
}

static void write_into(struct buffer buffer, size_t at, size_t size) {
    if (buffer.kind == DEVICE) OK(cuMemcpyHtoD((CUdeviceptr)buffer.data + at, scratch, size));
    else memcpy(buffer.data + at, scratch, size);
}

/* What lies around a message, and where none came. */
static void poison(struct buffer buffer, size_t at, size_t size) {
    memset(scratch, 0xc7, size + 2 * GUARD);
    write_into(buffer, at - GUARD, size + 2 * GUARD);
}

static void fill(struct buffer buffer, size_t at, size_t size, uint64_t seed) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t value = word(seed, i / 8);
        memcpy(scratch + i, &value, 8);
    }
    write_into(buffer, at, size);
}

static void check(struct buffer buffer, size_t at, size_t size, uint64_t seed, const char *what) {
    if (buffer.kind == DEVICE) OK(cuMemcpyDtoH(scratch, (CUdeviceptr)buffer.data + at - GUARD, size + 2 * GUARD));
    else memcpy(scratch, buffer.data + at - GUARD, size + 2 * GUARD);
    for (size_t i = 0; i < GUARD; i++)
        if (scratch[i] != 0xc7 || scratch[GUARD + size + i] != 0xc7) DIE("%s: a byte outside the message was written (%zu)", what, i);
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < size; i++)
        if (scratch[GUARD + i] != (unsigned char)(word(seed, i / 8) >> 8 * (i % 8)) && wrong++ == 0) first = i;
    if (wrong) DIE("%s: %zu of %zu bytes wrong, the first at %zu", what, wrong, size, first);
}

/* The target's memory as UCP knows it, for the origin of a put or get. */
static void expose(struct buffer buffer, ucp_mem_h *memory) {
    ucp_mem_map_params_t parameters = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH, .address = buffer.data, .length = buffer.size};
    void *packed;
    UCS(ucp_mem_map(ucp, &parameters, memory));
    struct slot *slot = slot_of(me);
    UCS(ucp_rkey_pack(ucp, *memory, &packed, &slot->length));
    if (slot->length > sizeof slot->bytes) DIE("a key of %zu bytes", slot->length);
    memcpy(slot->bytes, packed, slot->length);
    slot->address = (uint64_t)buffer.data;
    ucp_rkey_buffer_release(packed);
}

static unsigned long long messages, bytes_checked;

/* One message from `from`'s memory at one rank to the other's; `source` is the rank whose memory is read. */
static void exchange(int operation, int source, struct buffer mine, size_t at, size_t size, ucp_rkey_h key, uint64_t remote, const char *what) {
    static uint64_t seed;
    ucp_request_param_t none = {0};
    seed++;
    if (me == source) fill(mine, at, size, seed);
    else poison(mine, at, size);
    meet();
    switch (operation) {
    case TAG:
        if (me == source) {
            finish(ucp_tag_send_nbx(peer, mine.data + at, size, seed, &none));
        } else {
            /* Every other message comes unexpected. */
            if (seed % 2) usleep(1000);
            if (seed % 2) ucp_worker_progress(worker);
            finish(ucp_tag_recv_nbx(worker, mine.data + at, size, seed, UINT64_MAX, &none));
        }
        break;
    case AM:
        if (me == source) {
            finish(ucp_am_send_nbx(peer, AM_ID, NULL, 0, mine.data + at, size, &none));
        } else {
            while (!arrived) {
                if (__atomic_load_n(&world->failed, __ATOMIC_ACQUIRE)) _exit(1);
                ucp_worker_progress(worker);
            }
            void *message = arrived;
            if (arrived_length != size) DIE("%s: %zu bytes", what, arrived_length);
            arrived = NULL;
            finish(ucp_am_recv_data_nbx(worker, message, mine.data + at, size, &none));
        }
        break;
    case PUT:
        if (me == source) {
            finish(ucp_put_nbx(peer, mine.data + at, size, remote, key, &none));
            finish(ucp_ep_flush_nbx(peer, &none));
        }
        break;
    case GET:
        if (me != source) finish(ucp_get_nbx(peer, mine.data + at, size, remote, key, &none));
        break;
    }
    meet();
    if (me != source) check(mine, at, size, seed, what);
    messages++;
    bytes_checked += size;
}

static void pair(int operation, int source, int source_kind, int target_kind) {
    struct buffer mine = make(me == source ? source_kind : target_kind, largest + ROOM + 2 * GUARD);
    /* The side whose memory is read or written by the other. */
    int exposed = operation == PUT ? !source : operation == GET ? source : -1;
    ucp_mem_h memory = NULL;
    ucp_rkey_h key = NULL;
    char what[128];
    if (exposed == me) expose(mine, &memory);
    meet();
    if (exposed == !me) UCS(ucp_ep_rkey_unpack(peer, slot_of(!me)->bytes, &key));
    for (size_t s = 0; s < size_count; s++)
        for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
            /* One pair of offsets for each size, unless all are wanted. */
            if (!all_offsets && o != s % (sizeof offsets / sizeof *offsets)) continue;
            size_t at = GUARD + offsets[o][me != source], there = GUARD + offsets[o][me == source];
            snprintf(what, sizeof what, "%s of %zu bytes at +%zu, %s to %s at +%zu", operation_names[operation], sizes[s],
                     offsets[o][0], kind_names[source_kind], kind_names[target_kind], offsets[o][1]);
            exchange(operation, source, mine, at, sizes[s], key, slot_of(!me)->address + there, what);
        }
    if (key) ucp_rkey_destroy(key);
    meet();
    if (memory) UCS(ucp_mem_unmap(ucp, memory));
    end(mine);
    meet();
}

static void rank(void) {
    use_device();
    connect_ranks();
    scratch = malloc(largest + 2 * GUARD + 8);
    for (int o = 0; o < operation_count; o++)
        for (int a = 0; a < kind_count; a++)
            for (int b = 0; b < kind_count; b++)
                for (int source = 0; source < 2; source++) pair(operations[o], source, kinds[a], kinds[b]);
    free(scratch);
    disconnect();
    if (me == 0) printf("%llu messages, %llu bytes, all right\n", messages, bytes_checked);
}

static int named(const char *text, const char *const *names, int count, int *into) {
    int found = 0;
    char *copy = strdup(text);
    for (char *one = strtok(copy, ","); one; one = strtok(NULL, ",")) {
        int i = 0;
        while (i < count && strcmp(one, names[i])) i++;
        if (i == count || found == count) exit(2);
        into[found++] = i;
    }
    free(copy);
    return found;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--all-offsets")) {
            all_offsets = 1;
            continue;
        }
        if (!strcmp(argv[i], "--kinds")) kind_count = named(value, kind_names, KINDS, kinds);
        else if (!strcmp(argv[i], "--operations")) operation_count = named(value, operation_names, OPERATIONS, operations);
        else if (!strcmp(argv[i], "--sizes")) {
            char *rest = (char *)value;
            for (size_count = 0; *rest && size_count < 64; rest += *rest == ',') sizes[size_count++] = strtoull(rest, &rest, 10);
        } else return 2;
        i++;
    }
    for (size_t s = 0; s < size_count; s++)
        if (sizes[s] > largest) largest = sizes[s];
    return run_ranks(rank, 540);
}
