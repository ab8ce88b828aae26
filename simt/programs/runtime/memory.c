/* Device memory, pinned and managed memory: one file, mapped by this process and by the server.

   Device memory is mapped twice here: at the addresses that the program gets, without access, so that the host's
   own code fails there as it does with a GPU; and once more for cudaMemcpy. */
#include "runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENT (2ull << 20)          /* a GPU maps its memory in pages of this size */
#define MOST_ROWS ((TABLE_BYTES - sizeof(struct table)) / sizeof(struct allocation))

int region_file = -1;
struct table *allocations;
static char *alias; /* where this process sees the region's file with all access */
/* The first page is the driver's own, as on a GPU: programs that read a little before their first array run there. */
static uint64_t next_device = DEVICE_START + SEGMENT, next_host = HOST_START;
static uint64_t used_bytes;
static uint32_t number;

/* Return a file in memory. A sandbox may refuse memfd_create: there, a file without a name does. */
static int shared_file(void) {
    int file = memfd_create("labkit", MFD_CLOEXEC);
    if (file < 0) {
        const char *folder = getenv("TMPDIR");
        file = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    return file;
}

/* Map a file for the region. `place` says whether something may lie there already: MAP_FIXED or not. */
static void map_region(int place, int file) {
    region_file = file >= 0 ? file : shared_file();
    if (region_file < 0 || ftruncate(region_file, (off_t)REGION_BYTES)) {
        tell("labkit: cannot create shared memory for the simulator: %s", strerror(errno));
        _exit(1);
    }
    void *region = mmap((void *)REGION_START, REGION_BYTES, PROT_NONE,
                        MAP_SHARED | MAP_NORESERVE | place, region_file, 0);
    alias = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, region_file, 0);
    if (region != (void *)REGION_START || alias == MAP_FAILED) {
        tell("labkit: addresses from %#llx on are not free in this process: %s", (unsigned long long)REGION_START,
             strerror(errno));
        _exit(1);
    }
    madvise(region, REGION_BYTES, MADV_DONTDUMP);
    madvise(alias, REGION_BYTES, MADV_DONTDUMP);
    mprotect((void *)HOST_START, REGION_START + REGION_BYTES - HOST_START, PROT_READ | PROT_WRITE);
    allocations = (struct table *)alias;
}

void begin_memory(int file) { map_region(MAP_FIXED_NOREPLACE, file); }

/* After fork(): give this process a region of its own, with what its parent has there. */
void begin_own_memory(void) {
    char *parents = alias;
    close(region_file);
    map_region(MAP_FIXED, -1);
    const struct table *earlier = (const struct table *)parents;
    memcpy(allocations, earlier, sizeof *earlier + earlier->count * sizeof *earlier->rows);
    for (uint64_t i = 0; i < allocations->count; i++) {
        const struct allocation *row = &allocations->rows[i];
        memcpy(writable((void *)row->start), parents + (row->start - REGION_START), row->bytes);
    }
    munmap(parents, REGION_BYTES);
}

bool is_ours(const void *pointer) {
    uint64_t at = (uint64_t)pointer;
    return at >= REGION_START && at < REGION_START + REGION_BYTES;
}

void *writable(const void *pointer) {
    return is_ours(pointer) ? alias + ((uint64_t)pointer - REGION_START) : (void *)pointer;
}

/* Return the number of the first row that starts beyond an address. */
static uint64_t row_after(uint64_t address) {
    uint64_t low = 0, high = allocations->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (allocations->rows[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct allocation *find_allocation(const void *pointer) {
    uint64_t at = (uint64_t)pointer, row = row_after(at);
    if (!is_ours(pointer) || !row)
        return NULL;
    const struct allocation *found = &allocations->rows[row - 1];
    return at < found->start + found->bytes ? found : NULL;
}

static void insert(struct allocation row) {
    uint64_t at = row_after(row.start);
    memmove(&allocations->rows[at + 1], &allocations->rows[at], (allocations->count - at) * sizeof row);
    allocations->rows[at] = row;
    allocations->count++;
    allocations->version++;
}

void note_variable(uint64_t start, uint64_t bytes, bool is_constant) {
    if (!find_allocation((void *)start))
        insert((struct allocation){.start = start, .bytes = bytes, .kind = is_constant ? CONSTANT : VARIABLE});
}

static uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

void *allocate(size_t bytes, enum kind kind, size_t alignment) {
    bool is_device = kind == DEVICE;
    uint64_t *next = is_device ? &next_device : &next_host;
    uint64_t end = is_device ? DEVICE_START + DEVICE_BYTES : REGION_START + REGION_BYTES;
    if (allocations->count >= MOST_ROWS || bytes > end - *next ||
        (is_device && used_bytes + bytes > the_machine()->memory_bytes))
        return NULL;
    uint64_t start = rounded(*next, alignment < 512 ? 512 : alignment);
    /* Checked, arrays lie apart; else large ones begin in pages of their own, as on a GPU. */
    if (bytes >= SEGMENT)
        start = rounded(start, SEGMENT);
    *next = rounded(start + bytes, 512) + (is_checked ? 4096 : 0);
    if (bytes >= SEGMENT)
        *next = rounded(*next, SEGMENT);
    if (is_device)
        used_bytes += bytes;
    struct allocation row = {.start = start, .bytes = bytes, .kind = kind, .number = ++number};
    memcpy(row.sites, call_sites(), sizeof row.sites);
    insert(row);
    if (is_checked && kind != PINNED) {
        uint32_t *words = writable((void *)start);
        for (size_t i = 0; i < (bytes + 3) / 4; i++)
            words[i] = POISON;
    }
    return (void *)start;
}

/* Have labkit check know what has been freed where: an access of it is told as one. */
static void report_freed(const struct allocation *row) {
    struct message message = {0};
    put_u64(&message, row->start);
    put_u64(&message, row->bytes);
    put_u32(&message, row->kind);
    put_u32(&message, row->number);
    put(&message, call_sites(), SITES * sizeof(uint64_t));
    ask(FREED, &message);
    forget(&message);
}

cudaError_t release(void *pointer, enum kind kind) {
    uint64_t at = (uint64_t)pointer, row = row_after(at);
    if (!row || allocations->rows[row - 1].start != at)
        return cudaErrorInvalidValue;
    struct allocation *found = &allocations->rows[row - 1];
    if (found->kind != (uint32_t)kind && !(kind == DEVICE && found->kind == MANAGED))
        return cudaErrorInvalidValue;
    if (found->kind == DEVICE)
        used_bytes -= found->bytes;
    if (is_checked)
        report_freed(found);
    /* Give whole pages back to the machine; an address is not used a second time. */
    uint64_t first = rounded(found->start, 4096), last = (found->start + found->bytes) / 4096 * 4096;
    if (last > first)
        fallocate(region_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(first - REGION_START),
                  (off_t)(last - first));
    memmove(found, found + 1, (allocations->count - row) * sizeof *found);
    allocations->count--;
    allocations->version++;
    return cudaSuccess;
}

/* A graph's memory has one address, and is there from its node of allocation to its node of freeing. */
void *reserve(size_t bytes) {
    void *found = allocate(bytes, DEVICE, 512);
    if (found)
        release(found, DEVICE);
    return found;
}

void run_allocation(const void *data, cudaStream_t stream) {
    const struct reserved *kept = data;
    (void)stream;
    if (find_allocation(kept->start)) {
        set_pending(cudaErrorInvalidValue);
        return;
    }
    used_bytes += kept->bytes;
    struct allocation row = {.start = (uint64_t)kept->start, .bytes = kept->bytes, .kind = DEVICE, .number = ++number};
    memcpy(row.sites, call_sites(), sizeof row.sites);
    insert(row);
}

void run_freeing(const void *data, cudaStream_t stream) {
    (void)stream;
    cudaError_t code = release(((const struct reserved *)data)->start, DEVICE);
    if (code)
        set_pending(code);
}

/* ------------------------------------------------------------------------------------------- allocating */

cudaError_t allocated(void **pointer, size_t bytes, enum kind kind) {
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    if (!bytes)
        return cudaSuccess;
    *pointer = allocate(bytes, kind, 512);
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

SERVED(cudaError_t, cudaMalloc, (void **pointer, size_t bytes)) {
    BEGIN_CALL();
    return done(allocated(pointer, bytes, DEVICE));
}

SERVED(cudaError_t, cudaMallocManaged, (void **pointer, size_t bytes, unsigned flags)) {
    BEGIN_CALL();
    if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return done(cudaErrorInvalidValue);
    return done(allocated(pointer, bytes, MANAGED));
}

SERVED(cudaError_t, cudaMallocHost, (void **pointer, size_t bytes)) {
    BEGIN_CALL();
    return done(allocated(pointer, bytes, PINNED));
}

SERVED(cudaError_t, cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags)) {
    BEGIN_CALL();
    if (flags & ~7u)
        return done(cudaErrorInvalidValue);
    return done(allocated(pointer, bytes, PINNED));
}

SERVED(cudaError_t, cudaFree, (void *pointer)) {
    BEGIN_SYNCHRONISING();
    host_waits_for_all();
    return done(pointer ? release(pointer, DEVICE) : cudaSuccess);
}

SERVED(cudaError_t, cudaFreeHost, (void *pointer)) {
    BEGIN_SYNCHRONISING();
    host_waits_for_all();
    return done(pointer ? release(pointer, PINNED) : cudaSuccess);
}

SERVED(cudaError_t, cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height)) {
    BEGIN_CALL();
    if (!pointer || !pitch)
        return done(cudaErrorInvalidValue);
    *pitch = rounded(width, 512);
    return done(allocated(pointer, *pitch * height, DEVICE));
}

SERVED(cudaError_t, cudaMalloc3D, (struct cudaPitchedPtr * pitched, struct cudaExtent extent)) {
    BEGIN_CALL();
    if (!pitched)
        return done(cudaErrorInvalidValue);
    *pitched = (struct cudaPitchedPtr){NULL, rounded(extent.width, 512), extent.width, extent.height};
    return done(allocated(&pitched->ptr, pitched->pitch * extent.height * extent.depth, DEVICE));
}

SERVED(cudaError_t, cudaMemGetInfo, (size_t * available, size_t *total)) {
    BEGIN_CALL();
    size_t bytes = the_machine()->memory_bytes;
    if (available)
        *available = bytes - used_bytes;
    if (total)
        *total = bytes;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaHostGetDevicePointer, (void **device, void *host, unsigned flags)) {
    BEGIN_CALL();
    host = on_device(host);
    const struct allocation *found = find_allocation(host);
    if (!device || flags || !found || found->kind != PINNED)
        return done(cudaErrorInvalidValue);
    *device = host;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaHostGetFlags, (unsigned *flags, void *host)) {
    BEGIN_CALL();
    const struct allocation *found = find_allocation(on_device(host));
    if (!flags || !found || found->kind != PINNED)
        return done(cudaErrorInvalidValue);
    *flags = cudaHostAllocMapped;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *pointer)) {
    BEGIN_CALL();
    if (!attributes)
        return done(cudaErrorInvalidValue);
    memset(attributes, 0, sizeof *attributes);
    void *device = on_device(pointer);
    const struct allocation *found = find_allocation(device);
    if (!found) {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = -2;
        attributes->hostPointer = (void *)pointer;
        return done(cudaSuccess);
    }
    bool is_host = found->kind == PINNED;
    attributes->type = found->kind == MANAGED ? cudaMemoryTypeManaged
                       : is_host              ? cudaMemoryTypeHost
                                              : cudaMemoryTypeDevice;
    attributes->devicePointer = device;
    attributes->hostPointer = is_host || found->kind == MANAGED ? (void *)pointer : NULL;
    return done(cudaSuccess);
}

/* ---------------------------------------------------------------------------------------------- copying */

static bool is_on_device(const void *pointer) {
    const struct allocation *found = find_allocation(pointer);
    return found ? found->kind != PINNED : is_ours(pointer) && (uint64_t)pointer < HOST_START;
}

/* Check that `rows` rows of `width` bytes, `pitch` apart, lie where the kind of copy says. With unified addressing
   device memory may stand where the kind names the host, as measured on an H100. */
static cudaError_t check_side(const void *pointer, size_t pitch, size_t width, size_t rows, bool must_be_device) {
    if (!pointer)
        return cudaErrorInvalidValue;
    const struct allocation *found = find_allocation(pointer);
    if (must_be_device && !found)
        return cudaErrorInvalidValue;
    if (found) {
        uint64_t last = (uint64_t)pointer + (rows - 1) * pitch + width;
        /* A copy may go on into the next array where a GPU's would; labkit check has gaps between arrays. */
        if (last > found->start + found->bytes && !find_allocation((char *)last - 1))
            return cudaErrorInvalidValue;
    } else if (is_ours(pointer)) {
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t rows, enum cudaMemcpyKind kind) {
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (!width || !rows)
        return cudaSuccess;
    if (rows > 1 && (width > to_pitch || width > from_pitch))
        return cudaErrorInvalidPitchValue;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    cudaError_t code = check_side(to, to_pitch, width, rows, to_device);
    if (!code)
        code = check_side(from, from_pitch, width, rows, from_device);
    if (code)
        return code;
    char *target = writable(to);
    const char *source = writable(from);
    if (rows == 1 || (width == to_pitch && width == from_pitch)) {
        memmove(target, source, width * rows);
        return cudaSuccess;
    }
    for (size_t row = 0; row < rows; row++)
        memmove(target + row * to_pitch, source + row * from_pitch, width);
    return cudaSuccess;
}

static bool is_pinned(const void *pointer) {
    const struct allocation *found = find_allocation(on_device(pointer));
    return found && found->kind == PINNED;
}

/* Note in the model of time how long a copy takes, with the direction that the pointers say. */
static void time_transfer(cudaStream_t stream, const void *to, const void *from, size_t bytes, bool is_async) {
    bool to_device = is_on_device(to), from_device = is_on_device(from);
    enum cudaMemcpyKind kind = to_device && from_device ? cudaMemcpyDeviceToDevice
                               : to_device              ? cudaMemcpyHostToDevice
                               : from_device            ? cudaMemcpyDeviceToHost
                                                        : cudaMemcpyHostToHost;
    bool pinned = is_pinned(to) || is_pinned(from);
    time_copy(stream, bytes, kind, pinned, !is_async || !pinned);
}

static bool is_devices_alone(const void *pointer) {
    const struct allocation *found = find_allocation(pointer);
    return is_on_device(pointer) && !(found && found->kind == MANAGED);
}

/* Note the order of a copy, as "API synchronization behavior" in CUDA's documentation has it; where that leaves it
   open whether the host waits, it does. */
static void order_copy(cudaStream_t stream, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                       size_t width, size_t rows, bool is_async) {
    if (!follows_order())
        return;
    bool pageable_target = !is_ours(on_device(to)), pageable_source = !is_ours(on_device(from));
    uint64_t handle = stream_handle(stream);
    bool waits = is_async ? pageable_target : !(is_devices_alone(to) && is_devices_alone(from));
    if (pageable_source)
        note_order(HOST_WAITS_FOR_STREAM, &handle, 1);
    uint64_t numbers[] = {handle, (uint64_t)on_device(to), to_pitch, (uint64_t)on_device(from), from_pitch,
                          width,  rows};
    note_order(MOVED, numbers, 7);
    if (waits)
        note_order(HOST_WAITS_FOR_STREAM, &handle, 1);
}

/* Report a copy to the host that takes memory along which nobody has written: it holds POISON still (of simt/common/bits.py,
   defined by simt/programs/library.py). Fewer words than PADDING may be a structure's padding, unless they are all that
   is copied. Returns whether there is such memory. */
#define PADDING 4
static bool check_written(const char *from, size_t pitch, size_t width, size_t rows) {
    const struct allocation *found = find_allocation(from);
    if (!found || found->kind == PINNED || (uint64_t)from % 4 || pitch % 4)
        return false;
    for (size_t row = 0; row < rows; row++) {
        const uint32_t *words = writable(from + row * pitch);
        size_t count = width / 4, run = 0;
        for (size_t i = 0; i <= count; i++) {
            if (i < count && words[i] == POISON) {
                run++;
                continue;
            }
            if (run >= PADDING || (run && run == count)) {
                struct message message = {0};
                put_u64(&message, (uint64_t)from + row * pitch + 4 * (i - run));
                put_u64(&message, 4 * run);
                put(&message, call_sites(), SITES * sizeof(uint64_t));
                ask(UNWRITTEN, &message);
                forget(&message);
                return true;
            }
            run = 0;
        }
    }
    return false;
}

/* Give the host large numbers, of each type, for what was never written: all comparisons with a NaN are false, and a
   program that looks for differences would find none. */
#define LARGE 0x7bad7badu
static void show_unwritten(char *to, size_t pitch, size_t width, size_t rows) {
    const uint32_t unwritten = POISON, shown = LARGE;
    for (size_t row = 0; row < rows; row++)
        for (char *word = to + row * pitch; word + 4 <= to + row * pitch + width; word += 4)
            if (!memcmp(word, &unwritten, 4))
                memcpy(word, &shown, 4);
}

cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
                    enum cudaMemcpyKind kind, cudaStream_t stream, bool is_async) {
    cudaError_t code = check_stream(stream);
    if (!code)
        code = copy_rows(to, to_pitch, from, from_pitch, width, rows, kind);
    if (code || !width || !rows)
        return code;
    time_transfer(stream, to, from, width * rows, is_async);
    order_copy(stream, to, to_pitch, from, from_pitch, width, rows, is_async);
    if (is_checked && !is_on_device(to) && check_written(from, from_pitch, width, rows))
        show_unwritten(writable(to), to_pitch, width, rows);
    if (is_recorded && is_ours(from)) {
        uint64_t hull = (rows - 1) * from_pitch + width;
        note(COPIED, (uint64_t[]){(uint64_t)to, (uint64_t)from, hull}, 3, NULL, 0);
    }
    return code;
}

struct copy { /* kept for a graph */
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, rows;
    enum cudaMemcpyKind kind;
};

SERVED(cudaError_t, cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    return done(copy_2d(to, bytes, from, bytes, bytes, 1, kind, 0, false));
}

SERVED(cudaError_t, cudaMemcpy2D,
       (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    return done(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, 0, false));
}

static void run_copy(const void *data, cudaStream_t stream) {
    const struct copy *copy = data;
    copy_2d(copy->to, copy->to_pitch, copy->from, copy->from_pitch, copy->width, copy->rows, copy->kind, stream,
            true);
}

static cudaError_t copy_async(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream) {
    struct copy copy = {to, from, to_pitch, from_pitch, width, rows, kind};
    if (keep_for_graph(stream, run_copy, &copy, sizeof copy))
        return cudaSuccess;
    return copy_2d(to, to_pitch, from, from_pitch, width, rows, kind, stream, true);
}

SERVED(cudaError_t, cudaMemcpyAsync,
       (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(copy_async(to, bytes, from, bytes, bytes, 1, kind, stream));
}

SERVED(cudaError_t, cudaMemcpy2DAsync,
       (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(copy_async(to, to_pitch, from, from_pitch, width, height, kind, stream));
}

SERVED(cudaError_t, cudaMemcpyPeer,
       (void *to, int to_device, const void *from, int from_device, size_t bytes)) {
    BEGIN_SYNCHRONISING();
    if (to_device || from_device)
        return done(cudaErrorInvalidDevice);
    return done(copy_2d(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, 0, false));
}

/* Find `bytes` bytes of a variable. */
static cudaError_t in_symbol(const void *variable, size_t offset, size_t bytes, char **place) {
    size_t room;
    char *start = symbol(variable, &room);
    if (!start)
        return cudaErrorInvalidSymbol;
    if (offset > room || bytes > room - offset)
        return cudaErrorInvalidValue;
    *place = start + offset;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaMemcpyToSymbol,
       (const void *variable, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    (void)kind; /* the pointers say it */
    char *to;
    cudaError_t code = in_symbol(variable, offset, bytes, &to);
    if (code)
        return done(code);
    return done(copy_2d(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, 0, false));
}

SERVED(cudaError_t, cudaMemcpyFromSymbol,
       (void *to, const void *variable, size_t bytes, size_t offset, enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    (void)kind; /* the pointers say it */
    char *from;
    cudaError_t code = in_symbol(variable, offset, bytes, &from);
    if (code)
        return done(code);
    return done(copy_2d(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, 0, false));
}

SERVED(cudaError_t, cudaMemcpyToSymbolAsync,
       (const void *variable, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
        cudaStream_t stream)) {
    BEGIN_CALL();
    (void)kind; /* the pointers say it */
    char *to;
    cudaError_t code = in_symbol(variable, offset, bytes, &to);
    if (code)
        return done(code);
    return done(copy_async(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, stream));
}

SERVED(cudaError_t, cudaMemcpyFromSymbolAsync,
       (void *to, const void *variable, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
        cudaStream_t stream)) {
    BEGIN_CALL();
    (void)kind; /* the pointers say it */
    char *from;
    cudaError_t code = in_symbol(variable, offset, bytes, &from);
    if (code)
        return done(code);
    return done(copy_async(to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, stream));
}

SERVED(cudaError_t, cudaGetSymbolAddress, (void **pointer, const void *variable)) {
    BEGIN_CALL();
    size_t bytes;
    void *found = symbol(variable, &bytes);
    if (!pointer || !found)
        return done(cudaErrorInvalidSymbol);
    *pointer = found;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGetSymbolSize, (size_t * bytes, const void *variable)) {
    BEGIN_CALL();
    return done(bytes && symbol(variable, bytes) ? cudaSuccess : cudaErrorInvalidSymbol);
}

/* ---------------------------------------------------------------------------------------------- setting */

struct fill {
    void *to;
    size_t pitch, width, rows;
    int value;
};

static cudaError_t fill_rows(const struct fill *fill, cudaStream_t stream, bool is_async) {
    cudaError_t code = check_stream(stream);
    if (!code && fill->width && fill->rows)
        code = check_side(fill->to, fill->pitch, fill->width, fill->rows, true);
    if (code)
        return code;
    char *target = writable(fill->to);
    for (size_t row = 0; row < fill->rows; row++)
        memset(target + row * fill->pitch, fill->value, fill->width);
    time_copy(stream, fill->width * fill->rows, cudaMemcpyDeviceToDevice, true, false);
    if (!fill->width || !fill->rows || !follows_order())
        return cudaSuccess;
    uint64_t handle = stream_handle(stream);
    note_order(MOVED, (uint64_t[]){handle, (uint64_t)on_device(fill->to), fill->pitch, 0, 0, fill->width, fill->rows},
               7);
    if (!is_async && !is_devices_alone(fill->to))
        note_order(HOST_WAITS_FOR_STREAM, &handle, 1);
    return cudaSuccess;
}

static void run_fill(const void *data, cudaStream_t stream) { fill_rows(data, stream, true); }

static cudaError_t fill_async(struct fill fill, cudaStream_t stream) {
    if (keep_for_graph(stream, run_fill, &fill, sizeof fill))
        return cudaSuccess;
    return fill_rows(&fill, stream, true);
}

SERVED(cudaError_t, cudaMemset, (void *to, int value, size_t bytes)) {
    BEGIN_CALL();
    return done(fill_rows(&(struct fill){to, bytes, bytes, 1, value}, 0, false));
}

SERVED(cudaError_t, cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(fill_async((struct fill){to, bytes, bytes, 1, value}, stream));
}

SERVED(cudaError_t, cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height)) {
    BEGIN_CALL();
    return done(fill_rows(&(struct fill){to, pitch, width, height, value}, 0, false));
}

SERVED(cudaError_t, cudaMemset2DAsync,
       (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(fill_async((struct fill){to, pitch, width, height, value}, stream));
}

SERVED(cudaError_t, cudaMemset3D, (struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)) {
    BEGIN_CALL();
    cudaError_t code = cudaSuccess;
    for (size_t z = 0; z < extent.depth && !code; z++) {
        char *plane = (char *)pitched.ptr + z * pitched.pitch * pitched.ysize;
        code = fill_rows(&(struct fill){plane, pitched.pitch, extent.width, extent.height, value}, 0, false);
    }
    return done(code);
}

/* Managed memory is where both sides read it: advice and prefetching change nothing here. */
SERVED(cudaError_t, cudaMemPrefetchAsync,
       (const void *pointer, size_t bytes, struct cudaMemLocation place, unsigned flags, cudaStream_t stream)) {
    BEGIN_CALL();
    (void)bytes, (void)place, (void)flags;
    cudaError_t code = check_stream(stream);
    return done(code ? code : find_allocation(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaMemAdvise,
       (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation place)) {
    BEGIN_CALL();
    (void)bytes, (void)advice, (void)place;
    return done(find_allocation(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

/* After a kernel's mistake no call frees memory any more, so what is left is not what the program forgot: an
   allocation without a place is no leak. */
void excuse_leaks(void) {
    if (sticky_error() == cudaSuccess)
        return;
    for (uint64_t i = 0; i < allocations->count; i++)
        allocations->rows[i].sites[0] = 0;
}
