// AQL queues without kernels: barriers of all kinds, wrap-around, several producers, errors, destruction with work pending.
#include "common.h"
#include <pthread.h>

static struct machine m;

static hsa_barrier_and_packet_t barrier(int type)
{
    hsa_barrier_and_packet_t packet = {.header = packet_header(type)};
    return packet;
}

static void report(hsa_status_t status, hsa_queue_t *queue, void *data)
{
    (void)queue;
    __atomic_store_n((int *)data, (int)status, __ATOMIC_RELEASE);
}

static hsa_queue_t *queue_new(uint32_t size, int *error)
{
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(m.gpu[0].agent, size, HSA_QUEUE_TYPE_MULTI, report, error, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static void barriers_and_wrapping(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_signal_t gate = signal_new(1), done = signal_new(1);
    for (int i = 0; i < 1000; i++) {
        hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
        if (i == 0) packet.dep_signal[3] = gate;
        if (i == 999) packet.completion_signal = done;
        if (i == 40) {
            usleep(5000);
            EXPECT(hsa_queue_load_read_index_scacquire(queue) == 0, "the queue to wait at its first packet");
            hsa_signal_store_screlease(gate, 0);
        }
        submit(queue, &packet);
    }
    wait_for(done, "1000 barriers in a queue of 64");
    // A completion is seen before the read index that follows it.
    for (int i = 0; i < 1000 && hsa_queue_load_read_index_scacquire(queue) < 1000; i++) usleep(1000);
    EXPECT(hsa_queue_load_read_index_scacquire(queue) == 1000, "all packets to be consumed");
    EXPECT(error == 0, "no queue error");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(gate));
    CHECK(hsa_signal_destroy(done));
}

static void barrier_or(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_signal_t a = signal_new(1), b = signal_new(1), done = signal_new(1);
    hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_OR);
    packet.dep_signal[0] = a;
    packet.dep_signal[4] = b;
    packet.completion_signal = done;
    submit(queue, &packet);
    usleep(5000);
    EXPECT(hsa_signal_load_scacquire(done) == 1, "the barrier to wait");
    hsa_signal_store_screlease(b, 0);
    wait_for(done, "barrier-or");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(a));
    CHECK(hsa_signal_destroy(b));
    CHECK(hsa_signal_destroy(done));
}

static void barrier_value(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_signal_t value = signal_new(0x100), done = signal_new(1);
    hsa_amd_barrier_value_packet_t packet = {
        .header = {.header = packet_header(HSA_PACKET_TYPE_VENDOR_SPECIFIC), .AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE},
        .signal = value,
        .value = 7,
        .mask = 0xff,
        .cond = HSA_SIGNAL_CONDITION_GTE,
        .completion_signal = done,
    };
    submit(queue, &packet);
    hsa_signal_store_screlease(value, 0x106);
    usleep(5000);
    EXPECT(hsa_signal_load_scacquire(done) == 1, "the barrier to wait for a masked 7");
    hsa_signal_store_screlease(value, 0x208);
    wait_for(done, "barrier-value");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(value));
    CHECK(hsa_signal_destroy(done));
}

static void *produce(void *data)
{
    hsa_queue_t *queue = data;
    for (int i = 0; i < 500; i++) {
        hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
        submit(queue, &packet);
    }
    return NULL;
}

static void producers(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) pthread_create(&thread[i], NULL, produce, queue);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    hsa_signal_t done = signal_new(1);
    hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
    packet.completion_signal = done;
    submit(queue, &packet);
    wait_for(done, "packets of three producers");
    EXPECT(error == 0, "no queue error");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
}

// Two producers reserve a packet each; the later one rings first, and the earlier one's ring overwrites it.
static void rings_out_of_order(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_barrier_and_packet_t *ring = queue->base_address;
    for (int i = 0; i < 200; i++) {
        hsa_signal_t done = signal_new(1);
        uint64_t first = hsa_queue_add_write_index_screlease(queue, 2);
        for (uint64_t index = first; index < first + 2; index++) {
            hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
            uint16_t header = packet.header;
            packet.header = HSA_PACKET_TYPE_INVALID;
            if (index != first) packet.completion_signal = done;
            ring[index % 64] = packet;
            __atomic_store_n(&ring[index % 64].header, header, __ATOMIC_RELEASE);
        }
        hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)first + 1);
        hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)first);
        wait_for(done, "the packet whose ring was overwritten");
        CHECK(hsa_signal_destroy(done));
    }
    EXPECT(error == 0, "no queue error");
    CHECK(hsa_queue_destroy(queue));
}

// A hundred thousand packets of four producers; every thousandth counts itself.
enum { PACKETS = 25000, COUNTED = 1000 };

struct work {
    hsa_queue_t *queue;
    hsa_signal_t count;
};

static void *produce_many(void *data)
{
    struct work *work = data;
    for (int i = 1; i <= PACKETS; i++) {
        hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
        if (i % COUNTED == 0) packet.completion_signal = work->count;
        submit(work->queue, &packet);
    }
    return NULL;
}

static void hundred_thousand(void)
{
    int error = 0;
    struct work work = {queue_new(4096, &error), signal_new(4 * PACKETS / COUNTED)};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, produce_many, &work);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    hsa_signal_value_t left = hsa_signal_wait_scacquire(work.count, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
    EXPECT(left == 0, "all counted packets to complete once, %ld are left", (long)left);
    for (int i = 0; i < 5000 && hsa_queue_load_read_index_scacquire(work.queue) < 4 * PACKETS; i++) usleep(1000);
    EXPECT(hsa_queue_load_read_index_scacquire(work.queue) == 4 * PACKETS, "100000 packets to be consumed");
    EXPECT(error == 0, "no queue error");
    CHECK(hsa_queue_destroy(work.queue));
    CHECK(hsa_signal_destroy(work.count));
}

// More queues than the card has slots for, all with work: each waits for the one before, the last one was filled first.
static void more_than_slots(void)
{
    enum { QUEUES = 60 };
    int error = 0;
    hsa_queue_t *queue[QUEUES];
    hsa_signal_t signal[QUEUES + 1];
    for (int i = 0; i <= QUEUES; i++) signal[i] = signal_new(1);
    for (int i = QUEUES - 1; i >= 0; i--) {
        queue[i] = queue_new(64, &error);
        hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
        packet.dep_signal[0] = signal[i];
        packet.completion_signal = signal[i + 1];
        submit(queue[i], &packet);
    }
    hsa_signal_store_screlease(signal[0], 0);
    wait_for(signal[QUEUES], "a chain over 60 queues");
    EXPECT(error == 0, "no queue error");
    for (int i = 0; i < QUEUES; i++) CHECK(hsa_queue_destroy(queue[i]));
    for (int i = 0; i <= QUEUES; i++) CHECK(hsa_signal_destroy(signal[i]));
}

// A bad packet: the queue's callback says what is wrong with it, once, and the queue does no more.
static void bad_packet(const void *packet, hsa_status_t status, const char *what)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_signal_t done = signal_new(1);
    hsa_barrier_and_packet_t good = barrier(HSA_PACKET_TYPE_BARRIER_AND);
    good.completion_signal = done;
    submit(queue, packet);
    submit(queue, &good);
    for (int i = 0; i < 5000 && !__atomic_load_n(&error, __ATOMIC_ACQUIRE); i++) usleep(1000);
    EXPECT(error == (int)status, "the queue's callback to say %#x to %s, not %#x", status, what, error);
    EXPECT(hsa_signal_load_scacquire(done) == 1, "nothing to happen after %s", what);
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
}

static void errors(void)
{
    hsa_kernel_dispatch_packet_t dispatch = {.header = packet_header(HSA_PACKET_TYPE_KERNEL_DISPATCH)};
    bad_packet(&dispatch, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, "no dimensions");
    dispatch.setup = 1;
    dispatch.workgroup_size_x = dispatch.workgroup_size_y = dispatch.workgroup_size_z = 1;
    dispatch.grid_size_x = dispatch.grid_size_y = dispatch.grid_size_z = 1;
    bad_packet(&dispatch, HSA_STATUS_ERROR_INVALID_CODE_OBJECT, "no kernel");
    dispatch.kernel_object = 4096;
    dispatch.group_segment_size = 1 << 20;
    bad_packet(&dispatch, HSA_STATUS_ERROR_INVALID_ALLOCATION, "too much LDS");
    dispatch.group_segment_size = 0;
    dispatch.workgroup_size_x = 2048;
    bad_packet(&dispatch, HSA_STATUS_ERROR_INVALID_ARGUMENT, "a large work-group");
    hsa_barrier_and_packet_t strange = barrier(9);
    bad_packet(&strange, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, "a packet of type 9");
    hsa_amd_barrier_value_packet_t vendor = {
        .header = {.header = packet_header(HSA_PACKET_TYPE_VENDOR_SPECIFIC), .AmdFormat = 77},
    };
    bad_packet(&vendor, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, "a vendor packet of format 77");
    hsa_queue_t *queue;
    // The device goes on.
    int other = 0;
    queue = queue_new(64, &other);
    hsa_signal_t done = signal_new(1);
    hsa_barrier_and_packet_t good = barrier(HSA_PACKET_TYPE_BARRIER_AND);
    good.completion_signal = done;
    submit(queue, &good);
    wait_for(done, "a packet on another queue after an error");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
}

static void destruction(void)
{
    hsa_signal_t never = signal_new(1);
    for (int i = 0; i < 50; i++) {
        int error = 0;
        hsa_queue_t *queue = queue_new(64, &error);
        if (i % 2) {
            hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
            packet.dep_signal[0] = never;
            submit(queue, &packet);
        }
        CHECK(hsa_queue_destroy(queue));
    }
    CHECK(hsa_signal_destroy(never));
}

// A queue for grids that synchronise as a whole.
static void cooperative(void)
{
    uint32_t size = 0;
    bool supported = false;
    hsa_queue_t *queue;
    hsa_signal_t done = signal_new(1);
    CHECK(hsa_agent_get_info(m.gpu[0].agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES, &supported));
    EXPECT(supported, "cooperative queues");
    CHECK(hsa_agent_get_info(m.gpu[0].agent, HSA_AGENT_INFO_QUEUE_MIN_SIZE, &size));
    CHECK(hsa_queue_create(m.gpu[0].agent, size, HSA_QUEUE_TYPE_COOPERATIVE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
    packet.completion_signal = done;
    submit(queue, &packet);
    wait_for(done, "a packet on a cooperative queue");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
}

// Priorities and compute-unit masks are accepted.
static void attributes(void)
{
    int error = 0;
    hsa_queue_t *queue = queue_new(64, &error);
    hsa_signal_t done = signal_new(1);
    uint32_t mask[4] = {0xffff, 0, 0, 0};
    CHECK(hsa_amd_queue_set_priority(queue, HSA_AMD_QUEUE_PRIORITY_HIGH));
    CHECK(hsa_amd_queue_cu_set_mask(queue, 128, mask));
    hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND);
    packet.completion_signal = done;
    submit(queue, &packet);
    wait_for(done, "a packet after changes to its queue");
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
}

int main(void)
{
    m = machine_start(1);
    barriers_and_wrapping();
    rings_out_of_order();
    barrier_or();
    barrier_value();
    producers();
    hundred_thousand();
    more_than_slots();
    errors();
    destruction();
    cooperative();
    attributes();
    CHECK(hsa_shut_down());
    printf("queues: ok\n");
    return 0;
}
