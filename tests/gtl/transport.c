/* The protocol of the message layer: small messages and host memory go through a shared segment with two places, filled and emptied in
 * turn; from 1024 bytes on the receiver maps the sender's device buffer and copies from it. */
#include "transport.h"

#include <string.h>
#include <unistd.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int error_ = (int)(call);                                                                                      \
        if (error_) return error_;                                                                                     \
    } while (0)

/* What MPICH_GPU_IPC_THRESHOLD is by default; handles of this side kept, mappings of the other side's buffers kept. */
enum { THRESHOLD = 1024, HANDLES = 8, MAPPINGS = 4, PLACE = 256 << 10 };

/* An envelope: what the sender says about a message. */
struct envelope {
    uint64_t bytes, offset, base, size, id;
    int mapped;
    unsigned char handle[64];
};

/* One direction. `posted` and `taken` count envelopes, `filled` and `emptied` uses of each place. */
struct channel {
    struct envelope envelope;
    unsigned posted, taken, filled[2], emptied[2];
    unsigned char places[2][PLACE] __attribute__((aligned(4096)));
};

_Static_assert(2 * sizeof(struct channel) <= GTL_SEGMENT_BYTES, "the segment holds both directions");

static struct channel *channels;
static int me;
static struct gtl_counts counts;

static struct exported {
    uint64_t base, id;
    unsigned char handle[64];
} handles[HANDLES];
static unsigned next_handle;

static struct mapping {
    uint64_t base, id;
    void *here;
    unsigned long used;
} mappings[MAPPINGS];

static void wait_until(const unsigned *word, unsigned value) {
    for (unsigned turn = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; turn++)
        if (turn > 200) usleep(50);
}
static void tell(unsigned *word, unsigned value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

const struct gtl_counts *gtl_counts(void) { return &counts; }

int gtl_join(int rank, void *segment) {
    me = rank;
    channels = segment;
    TRY(runtime_start());
    return runtime_register(segment, GTL_SEGMENT_BYTES);
}

int gtl_leave(void) {
    for (int i = 0; i < MAPPINGS; i++)
        if (mappings[i].here) TRY(runtime_close(mappings[i].here));
    TRY(runtime_unregister(channels));
    return runtime_end();
}

/* The handle of a buffer, made once for each buffer: an entry of the same address with another id is of a buffer that is gone. */
static int handle_of(const struct gtl_place *place, unsigned char handle[64]) {
    struct exported *entry = NULL;
    for (int i = 0; i < HANDLES; i++)
        if (handles[i].base == place->base) entry = &handles[i];
    if (!entry) entry = &handles[next_handle++ % HANDLES];
    if (entry->base != place->base || entry->id != place->id) {
        entry->base = 0;
        TRY(runtime_export(place, entry->handle));
        entry->base = place->base;
        entry->id = place->id;
        counts.exported++;
    }
    memcpy(handle, entry->handle, 64);
    return 0;
}

/* The other rank's buffer, mapped here. */
static int mapping_of(const struct envelope *envelope, void **here) {
    static unsigned long clock;
    struct mapping *entry = NULL, *oldest = &mappings[0];
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].here && mappings[i].base == envelope->base) entry = &mappings[i];
        if (mappings[i].used < oldest->used) oldest = &mappings[i];
    }
    if (entry && entry->id != envelope->id) {
        TRY(runtime_close(entry->here));
        entry->here = NULL;
        counts.stale++;
    }
    if (!entry) {
        entry = oldest;
        if (entry->here) {
            TRY(runtime_close(entry->here));
            entry->here = NULL;
            counts.evicted++;
        }
    }
    if (entry->here) {
        counts.found++;
    } else {
        TRY(runtime_open(envelope->handle, envelope->size, &entry->here));
        entry->base = envelope->base;
        entry->id = envelope->id;
        counts.opened++;
    }
    entry->used = ++clock;
    *here = entry->here;
    return 0;
}

int gtl_send(const void *buffer, size_t bytes) {
    struct channel *out = &channels[me];
    struct envelope *envelope = &out->envelope;
    struct gtl_place place;
    TRY(runtime_query(buffer, &place));
    memset(envelope, 0, sizeof *envelope);
    envelope->bytes = bytes;
    if (place.shareable && bytes >= THRESHOLD) {
        envelope->mapped = 1;
        envelope->base = place.base;
        envelope->size = place.size;
        envelope->id = place.id;
        envelope->offset = (uint64_t)buffer - place.base;
        TRY(handle_of(&place, envelope->handle));
        tell(&out->posted, out->posted + 1);
        wait_until(&out->taken, out->posted);
        counts.mapped++;
        return 0;
    }
    tell(&out->posted, out->posted + 1);
    /* One copy runs while the other's place is taken by the receiver. */
    size_t parts = (bytes + PLACE - 1) / PLACE;
    for (size_t i = 0; i <= parts; i++) {
        if (i < parts) {
            size_t at = i * PLACE, part = bytes - at < PLACE ? bytes - at : PLACE;
            wait_until(&out->emptied[i % 2], out->filled[i % 2]);
            TRY(runtime_copy(i % 2, out->places[i % 2], (const char *)buffer + at, part));
        }
        if (i > 0) {
            TRY(runtime_wait((i - 1) % 2));
            tell(&out->filled[(i - 1) % 2], out->filled[(i - 1) % 2] + 1);
        }
    }
    wait_until(&out->taken, out->posted);
    counts.staged++;
    return 0;
}

int gtl_receive(void *buffer, size_t bytes) {
    struct channel *in = &channels[!me];
    struct gtl_place place;
    TRY(runtime_query(buffer, &place));
    wait_until(&in->posted, in->taken + 1);
    if (in->envelope.bytes != bytes) return -1;
    if (in->envelope.mapped) {
        void *from;
        TRY(mapping_of(&in->envelope, &from));
        TRY(runtime_copy(0, buffer, (char *)from + in->envelope.offset, bytes));
        TRY(runtime_wait(0));
    } else {
        size_t parts = (bytes + PLACE - 1) / PLACE;
        for (size_t i = 0; i < parts; i++) {
            size_t at = i * PLACE, part = bytes - at < PLACE ? bytes - at : PLACE;
            wait_until(&in->filled[i % 2], in->emptied[i % 2] + 1);
            TRY(runtime_copy(0, (char *)buffer + at, in->places[i % 2], part));
            TRY(runtime_wait(0));
            tell(&in->emptied[i % 2], in->emptied[i % 2] + 1);
        }
    }
    tell(&in->taken, in->taken + 1);
    return 0;
}
