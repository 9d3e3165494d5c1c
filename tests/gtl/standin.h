/* The interface of the stand-in for a closed GPU transport layer: libmpi_gtl_standin.so. Every function returns 0 or a CUDA error. */
#ifndef GTL_STANDIN_H
#define GTL_STANDIN_H

#include <stddef.h>

enum gtl_operation { GTL_SUM, GTL_MIN, GTL_MAX, GTL_PROD, GTL_OPERATIONS };
enum gtl_type { GTL_I32, GTL_U64, GTL_F32, GTL_F64, GTL_TYPES };

/* Makes the stream, events and staging memory of the current device. */
int gtl_init(void);
/* Lets the current device reach the memory of `device`, whose context is `context` (a CUcontext). 1 in `*possible`: it can. */
int gtl_enable_peer(int device, void *context, int *possible);
/* inout[i] = inout[i] OP in[i] */
int gtl_combine(enum gtl_operation operation, enum gtl_type type, void *inout, const void *in, size_t count);
/* *result (host memory) = in[0] OP in[1] OP ...; the elements are in device memory. */
int gtl_fold(enum gtl_operation operation, enum gtl_type type, void *result, const void *in, size_t count);
/* A copy between any two places, through pinned host memory of the layer's own when `staged`. */
int gtl_copy(void *to, const void *from, size_t bytes, int staged);
/* A copy from or to pageable host memory, which is registered meanwhile. */
int gtl_copy_registered(void *to, void *from, void *host, size_t bytes);
/* Stream-ordered flags: waits for `flags[0]` >= 32-bit `value` and 64-bit `flags + 1` >= `value`, then writes `value` to `flags + 2`.
 * `flags` is device memory of three 64-bit words. */
int gtl_triggered(unsigned long long *flags, unsigned value);
/* The device's name on the bus. */
int gtl_bus_id(char *text, int length);
const char *gtl_error(int error);
int gtl_finalize(void);

#endif
