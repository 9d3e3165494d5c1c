/* Pools of stream-ordered memory between processes: the pool travels as a descriptor, over a socket, and each allocation as 64 bytes.
 *
 * Rank 0 exports, ranks 1 and 2 import. Every byte is checked, in both directions; then pointers and pools end in every order, new segments come
 * after the import, and the exporter dies while others read. Over a ROCr without virtual memory all of it is refused.
 */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

enum { PIECES = 5, ROUNDS = 3 };

/* The last one needs a segment of its own. */
static const size_t sizes[PIECES] = {1, 1000, 65536, 3 << 20, 40 << 20};

static struct board {
    CUmemPoolPtrExportData pieces[PIECES];
    pid_t exporter;
} *board;

static int sockets[MOST_RANKS][2];
static CUstream stream;

static void send_descriptor(int to, int fd) {
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(to, &message, 0) != 1) DIE("sendmsg: %s", strerror(errno));
}

static int receive_descriptor(int from) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) DIE("recvmsg: %s", strerror(errno));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static unsigned char value(int piece, int round, int writer, size_t at) {
    return (unsigned char)(piece * 41 + round * 17 + writer * 89 + at * 13 + (at >> 8) + 1);
}

static void fill(CUdeviceptr to, int piece, int round, int writer) {
    unsigned char *bytes = malloc(sizes[piece]);
    for (size_t at = 0; at < sizes[piece]; at++) bytes[at] = value(piece, round, writer, at);
    OK(cuMemcpyHtoDAsync(to, bytes, sizes[piece], stream));
    OK(cuStreamSynchronize(stream));
    free(bytes);
}

static void check(CUdeviceptr from, int piece, int round, int writer) {
    unsigned char *bytes = calloc(1, sizes[piece]);
    OK(cuMemcpyDtoHAsync(bytes, from, sizes[piece], stream));
    OK(cuStreamSynchronize(stream));
    for (size_t at = 0; at < sizes[piece]; at++)
        if (bytes[at] != value(piece, round, writer, at))
            DIE("piece %d, round %d: byte %zu is %#x, not %#x", piece, round, at, bytes[at], value(piece, round, writer, at));
    free(bytes);
}

static CUmemoryPool new_pool(void) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    CUmemoryPool pool = NULL;
    OK(cuMemPoolCreate(&pool, &properties));
    return pool;
}

/* On a machine without it every call says so. */
static void refused(void) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    CUmemoryPool pool = NULL;
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &properties));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolImportFromShareableHandle(&pool, (void *)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    if (me == 0) printf("sharing pools is not supported here, and every call says so\n");
}

/* What no pool of another process is. */
static void wrong_arguments(CUmemoryPool pool) {
    CUmemoryPool none = NULL, current = NULL;
    CUdeviceptr address = 0;
    CUmemPoolPtrExportData data;
    int fd = -1, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    OK(cuDeviceGetMemPool(&current, device));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, current, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    GIVES(CUDA_ERROR_UNKNOWN, cuMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    GIVES(CUDA_ERROR_UNKNOWN, cuMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)null, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemAllocAsync(&address, 100, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, address));
    OK(cuMemFreeAsync(address, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, 0x1000));
    close(null);
}

static void export_piece(CUmemoryPool pool, int piece, int round, CUdeviceptr *to) {
    OK(cuMemAllocFromPoolAsync(to, sizes[piece], pool, stream));
    fill(*to, piece, round, 0);
    OK(cuMemPoolExportPointer(&board->pieces[piece], *to));
}

static void exporter(int round) {
    CUdeviceptr pieces[PIECES];
    CUmemoryPool pool = new_pool();
    int fd = -1;
    wrong_arguments(pool);
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC)) DIE("the descriptor is not closed on exec");
    for (int rank = 1; rank < ranks; rank++) send_descriptor(sockets[rank][0], fd);
    close(fd);
    barrier(); /* pools are imported before the memory exists */
    for (int piece = 0; piece < PIECES; piece++) export_piece(pool, piece, round, &pieces[piece]);
    barrier(); /* pieces are exported */
    barrier(); /* all have read */
    barrier(); /* what they wrote is there */
    for (int piece = 0; piece < PIECES; piece++) check(pieces[piece], piece, round, 1 + piece % (ranks - 1));
    if (round == 1) { /* the exporter ends first: its memory stays with those who have it */
        for (int piece = 0; piece < PIECES; piece++) OK(cuMemFreeAsync(pieces[piece], stream));
        OK(cuStreamSynchronize(stream));
        OK(cuMemPoolTrimTo(pool, 0));
        OK(cuMemPoolDestroy(pool));
    }
    barrier(); /* the exporter has looked, and may have ended */
    barrier(); /* importers are done */
    if (round == 1) return;
    for (int piece = PIECES; piece-- > 0;) OK(cuMemFree(pieces[piece]));
    OK(cuMemPoolDestroy(pool));
}

/* An imported pool is its own GPU's, the exporter's, until others are let in. */
static void let_in(CUmemoryPool pool) {
    CUmemAccess_flags flags = 0;
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, there = here;
    CUmemAccessDesc wanted = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    there.id = 0;
    if ((flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) != (device == 0)) DIE("access %d before it is given", (int)flags);
    OK(cuMemPoolSetAccess(pool, &wanted, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) DIE("access %d", (int)flags);
    wanted.location = there;
    wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &wanted, 1));
}

static void importer(int round) {
    CUmemoryPool pool = NULL, twice = NULL;
    CUdeviceptr pieces[PIECES], again = 0, base = 0;
    size_t size = 0;
    int fd = receive_descriptor(sockets[me][1]), before = open_descriptors();
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolImportFromShareableHandle(&twice, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    if (twice != pool) DIE("the same pool twice has two handles");
    close(fd);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&again, 100, pool, stream));
    let_in(pool);
    barrier(); /* pools are imported before the memory exists */
    barrier(); /* pieces are exported */
    for (int piece = 0; piece < PIECES; piece++) {
        OK(cuMemPoolImportPointer(&pieces[piece], pool, &board->pieces[piece]));
        OK(cuMemGetAddressRange(&base, &size, pieces[piece] + sizes[piece] - 1));
        if (base != pieces[piece] || size != sizes[piece]) DIE("piece %d has %zu bytes", piece, size);
        check(pieces[piece], piece, round, 0);
    }
    OK(cuMemPoolImportPointer(&again, pool, &board->pieces[2]));
    if (again != pieces[2]) DIE("the same pointer twice has two addresses");
    /* One changed bit is none of them. */
    for (int bit = 0; bit < 512; bit += 7) {
        CUmemPoolPtrExportData data = board->pieces[1];
        ((unsigned char *)&data)[bit / 8] ^= 1 << bit % 8;
        GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&again, pool, &data));
    }
    if (open_descriptors() > before + 4) DIE("%d descriptors, %d before", open_descriptors(), before);
    barrier(); /* all have read */
    for (int piece = 0; piece < PIECES; piece++)
        if (1 + piece % (ranks - 1) == me) fill(pieces[piece], piece, round, me);
    barrier(); /* what they wrote is there */
    barrier(); /* the exporter has looked, and may have ended */
    for (int piece = 0; piece < PIECES; piece++) check(pieces[piece], piece, round, 1 + piece % (ranks - 1));
    /* Recorded: a pool from which a pointer was imported stays. */
    if (round == 2) GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    for (int i = 0; i < PIECES; i++) {
        int piece = me % 2 ? i : PIECES - 1 - i;
        if (piece % 2) OK(cuMemFree(pieces[piece]));
        else OK(cuMemFreeAsync(pieces[piece], stream));
        GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(pieces[piece]));
    }
    OK(cuStreamSynchronize(stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    barrier(); /* importers are done */
}

/* The exporter ends while others read. */
static void orphans(void) {
    CUmemoryPool pool = NULL;
    CUdeviceptr piece = 0, more = 0;
    int fd = -1;
    if (me == 0) {
        board->exporter = getpid();
        pool = new_pool();
        OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        for (int rank = 1; rank < ranks; rank++) send_descriptor(sockets[rank][0], fd);
        export_piece(pool, 3, 9, &piece);
        export_piece(pool, 4, 9, &more);
        barrier();
        barrier();
        fflush(NULL);
        _exit(0); /* without a word */
    }
    fd = receive_descriptor(sockets[me][1]);
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    let_in(pool);
    barrier();
    OK(cuMemPoolImportPointer(&piece, pool, &board->pieces[3]));
    barrier();
    while (kill(board->exporter, 0) == 0) usleep(1000);
    check(piece, 3, 9, 0);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemPoolImportPointer(&more, pool, &board->pieces[4]));
    OK(cuMemFree(piece));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
}

static void rank(void) {
    int supported = 0;
    board = (struct board *)world->board;
    for (int other = 1; other < ranks; other++) {
        if (me != 0) close(sockets[other][0]);
        if (me != other) close(sockets[other][1]);
    }
    use_device();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, device));
    if (!(supported & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
        refused();
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (me == 0) exporter(round);
        else importer(round);
    }
    orphans();
    if (me == 1) printf("%d rounds of pools shared by %d processes\n", ROUNDS, ranks);
}

int main(void) {
    ranks = 3;
    for (int other = 1; other < ranks; other++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[other])) return 2;
    return run_ranks(rank, 100);
}
