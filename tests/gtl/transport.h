/* Two ranks' message layer as a closed GPU transport layer has it below MPI, in two libraries with one interface: one asks CUDA about every
 * buffer, the other asks HSA alone (`transport_cuda.c`, `transport_hsa.c`). What both do is in `transport.c`.
 *
 * Every function returns 0 or an error of its runtime.
 */
#ifndef GTL_TRANSPORT_H
#define GTL_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

/* What the two ranks share: memory mapped in both before they part. */
#define GTL_SEGMENT_BYTES ((size_t)2 << 20)

/* Takes the shared segment, which is all zero, and registers it with the runtime. */
int gtl_join(int rank, void *segment);
/* One message to the other rank; the call ends when the buffer may be used again. */
int gtl_send(const void *buffer, size_t bytes);
/* The next message, which has `bytes` bytes. */
int gtl_receive(void *buffer, size_t bytes);
int gtl_leave(void);

/* What the layer did so far. */
struct gtl_counts {
    /* Messages that went by the shared segment; that were read from the sender's memory. */
    unsigned long staged, mapped;
    /* Mappings of the other rank's buffers: made; found again; closed because another buffer took the place; closed for room. */
    unsigned long opened, found, stale, evicted;
    /* Handles asked for. */
    unsigned long exported;
};
const struct gtl_counts *gtl_counts(void);

/* Below: what a runtime gives the layer. */

struct gtl_place {
    /* Device memory that other processes can map. */
    int shareable;
    uint64_t base, size;
    /* Differs between two buffers that follow each other at one address. */
    uint64_t id;
};

int runtime_start(void);
int runtime_query(const void *pointer, struct gtl_place *place);
int runtime_register(void *segment, size_t bytes);
int runtime_unregister(void *segment);
int runtime_export(const struct gtl_place *place, unsigned char handle[64]);
int runtime_open(const unsigned char handle[64], size_t size, void **base);
int runtime_close(void *base);
/* Starts copy 0 or 1, which `runtime_wait` ends. */
int runtime_copy(int which, void *to, const void *from, size_t bytes);
int runtime_wait(int which);
int runtime_end(void);

#endif
