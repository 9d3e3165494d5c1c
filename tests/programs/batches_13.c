/* Batches of copies and of prefetches by the calls of CUDA 13, through libcudart.so.13: every byte arrives, in the order that each copy's attribute
   asks for; what is malformed is refused. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "check.h"

enum { SIZE = 1 << 20 };

static cudaStream_t stream;

static unsigned char byte_at(size_t i, int seed) { return (unsigned char)(i * 131 + i / 251 + seed * 77); }

static void seed(unsigned char *at, int seed) {
    for (size_t i = 0; i < SIZE; i++) at[i] = byte_at(i, seed);
}

static void same(const char *what, const unsigned char *got, const unsigned char *want, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (got[i] != want[i]) DIE("%s: byte %zu is %d, not %d", what, i, got[i], want[i]);
}

static struct cudaMemcpyAttributes order(enum cudaMemcpySrcAccessOrder when) {
    struct cudaMemcpyAttributes how = {.srcAccessOrder = when};
    return how;
}

static void copies(unsigned char *pinned, unsigned char *pageable, unsigned char *device, unsigned char *other) {
    seed(pinned, 1);
    seed(pageable, 2);
    void *dsts[] = {device, device + SIZE / 2, other + 3, other + 70001};
    const void *srcs[] = {pinned, pinned + 5, pageable + 17, pageable};
    size_t sizes[] = {4096, 100001, 65537, 1}, firsts[] = {0, 2};
    struct cudaMemcpyAttributes how[] = {order(cudaMemcpySrcAccessOrderStream), order(cudaMemcpySrcAccessOrderDuringApiCall)};
    OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 4, how, firsts, 2, stream));
    /* What is read during the call may change after it. */
    memset(pageable, 0, SIZE);
    static unsigned char got[SIZE], want[SIZE];
    OK(cudaMemcpyAsync(got, device, 4096, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    same("pinned", got, pinned, 4096);
    OK(cudaMemcpy(got, device + SIZE / 2, 100001, cudaMemcpyDefault));
    same("pinned, part", got, pinned + 5, 100001);
    OK(cudaMemcpy(got, other, 70002, cudaMemcpyDefault));
    for (size_t i = 0; i < 65537; i++) want[i] = byte_at(i + 17, 2);
    same("pageable", got + 3, want, 65537);
    if (got[70001] != byte_at(0, 2)) DIE("one byte is %d", got[70001]);
    /* Between devices' memory and back, in one batch. */
    void *back[] = {pageable, pageable + 8192, other + SIZE / 2};
    const void *from[] = {device, other + 3, device};
    size_t lengths[] = {4096, 1000, 4096}, first = 0;
    struct cudaMemcpyAttributes any = order(cudaMemcpySrcAccessOrderAny);
    any.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    OK(cudaMemcpyBatchAsync(back, from, lengths, 3, &any, &first, 1, stream));
    OK(cudaStreamSynchronize(stream));
    same("back", pageable, pinned, 4096);
    same("back, part", pageable + 8192, want, 1000);
    OK(cudaMemcpy(got, other + SIZE / 2, 4096, cudaMemcpyDefault));
    same("beside", got, pinned, 4096);
}

static unsigned char *written_late;

static void write_late(void *data) {
    (void)data;
    usleep(20000);
    seed(written_late, 3);
}

/* In stream order, the source is what the work before leaves there, wherever it is. */
static void stream_order(unsigned char *source, unsigned char *device, const char *what) {
    static unsigned char got[SIZE], want[SIZE];
    seed(source, 4);
    seed(want, 3);
    written_late = source;
    OK(cudaLaunchHostFunc(stream, write_late, NULL));
    void *dst = device;
    const void *src = source;
    size_t size = SIZE, first = 0;
    struct cudaMemcpyAttributes how = order(cudaMemcpySrcAccessOrderStream);
    OK(cudaMemcpyBatchAsync(&dst, &src, &size, 1, &how, &first, 1, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(got, device, SIZE, cudaMemcpyDefault));
    same(what, got, want, SIZE);
}

static void refusals(unsigned char *pinned, unsigned char *device) {
    void *dsts[] = {device, device + 100};
    const void *srcs[] = {pinned, pinned + 100};
    size_t sizes[] = {50, 50}, zero[] = {50, 0}, firsts[] = {0, 1}, late[] = {1, 2}, beyond[] = {0, 2};
    struct cudaMemcpyAttributes how[] = {order(cudaMemcpySrcAccessOrderStream), order(cudaMemcpySrcAccessOrderAny)};
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, zero, 2, how, firsts, 2, stream));
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 0, how, firsts, 1, stream));
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, late, 2, stream));
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, beyond, 2, stream));
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, firsts, 2, NULL));
    how[1].flags = 2;
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, firsts, 2, stream));
    how[1] = order(cudaMemcpySrcAccessOrderInvalid);
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, firsts, 2, stream));
    how[1] = how[0];
    dsts[1] = device + SIZE - 10;
    GIVES(cudaErrorInvalidValue, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, firsts, 2, stream));
    dsts[1] = device + 100;
    cudaGraph_t graph = NULL;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    GIVES(cudaErrorStreamCaptureUnsupported, cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, how, firsts, 2, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamSynchronize(stream));
    cudaGetLastError();
}

/* A box of 20 x 6 x 3 bytes out of one of 64 x 8 x 4, and one into an array. */
static void boxes(unsigned char *pinned, unsigned char *device) {
    enum { WIDTH = 20, HEIGHT = 6, DEPTH = 3, ROW = 64, ROWS = 8 };
    seed(pinned, 5);
    struct cudaChannelFormatDesc format = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    struct cudaExtent extent = {WIDTH, HEIGHT, DEPTH};
    cudaArray_t array;
    OK(cudaMalloc3DArray(&array, &format, extent, 0));
    struct cudaMemcpy3DOperand memory = {.type = cudaMemcpyOperandTypePointer}, packed = memory, cells = {.type = cudaMemcpyOperandTypeArray};
    memory.op.ptr.ptr = pinned;
    memory.op.ptr.rowLength = ROW;
    memory.op.ptr.layerHeight = ROWS;
    packed.op.ptr.ptr = device;
    cells.op.array.array = array;
    struct cudaMemcpy3DBatchOp operations[] = {
        {.src = memory, .dst = packed, .extent = extent, .srcAccessOrder = cudaMemcpySrcAccessOrderStream},
        {.src = memory, .dst = cells, .extent = extent, .srcAccessOrder = cudaMemcpySrcAccessOrderAny},
    };
    OK(cudaMemcpy3DBatchAsync(2, operations, 0, stream));
    static unsigned char want[WIDTH * HEIGHT * DEPTH], got[sizeof want];
    for (size_t i = 0; i < sizeof want; i++)
        want[i] = pinned[i / (WIDTH * HEIGHT) * ROW * ROWS + i / WIDTH % HEIGHT * ROW + i % WIDTH];
    OK(cudaMemcpyAsync(got, device, sizeof got, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    same("box", got, want, sizeof got);
    memset(got, 0, sizeof got);
    packed.op.ptr.ptr = got;
    struct cudaMemcpy3DBatchOp out = {.src = cells, .dst = packed, .extent = extent, .srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    OK(cudaMemcpy3DBatchAsync(1, &out, 0, stream));
    OK(cudaStreamSynchronize(stream));
    same("array", got, want, sizeof got);
    GIVES(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(1, &out, 1, stream));
    out.extent.depth = 0;
    GIVES(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(1, &out, 0, stream));
    cudaGetLastError();
    OK(cudaFreeArray(array));
}

static int last_place(void *at, size_t size) {
    int place = -9;
    OK(cudaMemRangeGetAttribute(&place, sizeof place, cudaMemRangeAttributeLastPrefetchLocation, at, size));
    return place;
}

static void prefetches(unsigned char *device) {
    unsigned char *first, *second;
    static unsigned char want[SIZE];
    OK(cudaMallocManaged((void **)&first, SIZE, cudaMemAttachGlobal));
    OK(cudaMallocManaged((void **)&second, SIZE, cudaMemAttachGlobal));
    seed(first, 6);
    seed(want, 6);
    void *at[] = {first, second + 4096}, *wrong[] = {first, device};
    size_t sizes[] = {SIZE, 8192}, firsts[] = {0, 1}, late[] = {1, 2}, zero[] = {SIZE, 0};
    struct cudaMemLocation to[] = {{.type = cudaMemLocationTypeDevice, .id = 0}, {.type = cudaMemLocationTypeHost, .id = 0}};
    struct cudaMemLocation nowhere = {.type = cudaMemLocationTypeDevice, .id = 99};
    OK(cudaMemPrefetchBatchAsync(at, sizes, 2, to, firsts, 2, 0, stream));
    OK(cudaStreamSynchronize(stream));
    if (last_place(first, SIZE) != 0 || last_place(second, SIZE) != -1) DIE("prefetched to %d and %d", last_place(first, SIZE), last_place(second, SIZE));
    same("prefetched", first, want, SIZE);
    /* A batch with one wrong range moves nothing. */
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(wrong, sizes, 2, to + 1, firsts, 1, 0, stream));
    if (last_place(first, SIZE) != 0) DIE("prefetched by a batch that was refused");
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 2, to, late, 2, 0, stream));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, zero, 2, to, firsts, 2, 0, stream));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 0, to, firsts, 1, 0, stream));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 2, to, firsts, 0, 0, stream));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 2, to, firsts, 2, 1, stream));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 2, to, firsts, 2, 0, NULL));
    GIVES(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(at, sizes, 2, &nowhere, firsts, 1, 0, stream));
    /* What is discarded has no value until it is written; what is not stays. */
    OK(cudaMemDiscardBatchAsync(at + 1, sizes + 1, 1, 0, stream));
    GIVES(cudaErrorInvalidValue, cudaMemDiscardBatchAsync(wrong + 1, sizes, 1, 0, stream));
    OK(cudaMemDiscardAndPrefetchBatchAsync(at + 1, sizes + 1, 1, to, firsts, 1, 0, stream));
    OK(cudaMemsetAsync(second, 0x5a, SIZE, stream));
    OK(cudaStreamSynchronize(stream));
    if (last_place(second, SIZE) != 0) DIE("discarded memory was prefetched to %d", last_place(second, SIZE));
    same("beside what was discarded", first, want, SIZE);
    memset(want, 0x5a, SIZE);
    same("written after it was discarded", second, want, SIZE);
    cudaGetLastError();
    OK(cudaFree(first));
    OK(cudaFree(second));
}

int main(void) {
    int version;
    OK(cudaRuntimeGetVersion(&version));
    if (version / 1000 != 13) DIE("the runtime is %d", version);
    OK(cudaStreamCreate(&stream));
    unsigned char *pinned, *pageable = malloc(SIZE), *device, *other;
    OK(cudaMallocHost((void **)&pinned, SIZE));
    OK(cudaMalloc((void **)&device, SIZE));
    OK(cudaMalloc((void **)&other, SIZE));
    copies(pinned, pageable, device, other);
    stream_order(pinned, device, "pinned in stream order");
    stream_order(pageable, device, "pageable in stream order");
    refusals(pinned, device);
    boxes(pinned, device);
    prefetches(device);
    OK(cudaFree(device));
    OK(cudaFree(other));
    OK(cudaFreeHost(pinned));
    free(pageable);
    OK(cudaStreamDestroy(stream));
    printf("batches of copies, boxes and prefetches by CUDA 13's calls\n");
    return 0;
}
