/* The CUDA runtime's functions, served without a GPU: memory here, kernels by labkit's simulator in a process of
   its own ("the server", simt/programs/server). Both map the same memory at the same addresses.

   A function `cudaX` of the interface is written SERVED(type, cudaX, (parameters)); simt/programs/library.py
   finds it by this word and makes the table that `cudaX` jumps through. */
#ifndef LABKIT_RUNTIME_H
#define LABKIT_RUNTIME_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVED(type, name, parameters) type sim_##name parameters

/* ---------------------------------------------------------------------------------- memory that both map */

#define REGION_START 0x300000000000ull /* nothing else lies there, so the server can map it at the same place */
#define REGION_BYTES (1ull << 40)
#define TABLE_BYTES (1ull << 24)            /* first in the region: what is allocated */
#define VARIABLE_BYTES (1ull << 32)         /* then the modules' variables, which the server places */
#define DEVICE_START (REGION_START + TABLE_BYTES + VARIABLE_BYTES)
#define DEVICE_BYTES (1ull << 39)           /* device memory: the host's own code cannot read it */
#define HOST_START (DEVICE_START + DEVICE_BYTES) /* pinned and managed memory, which both sides use */

#define SITES 6

enum kind { FREE = 0, DEVICE = 1, PINNED = 2, MANAGED = 3, VARIABLE = 4, CONSTANT = 5 };

struct allocation { /* as simt/programs/server/memory.py reads it */
    uint64_t start, bytes;
    uint32_t kind, number; /* number: of allocations so far */
    uint64_t sites[SITES]; /* return addresses in this process that lead to the call; 0: no more */
};

struct table { /* at REGION_START */
    uint64_t version; /* changes with every allocation and every free */
    uint64_t count;
    uint64_t flags, unused; /* what simt/programs/recording.py asks of a run: CHECKED and the like */
    struct allocation rows[];
};

extern struct table *allocations;
void excuse_leaks(void); /* where a sticky error has kept the program from freeing */

/* Return the row that holds these bytes, or NULL. */
const struct allocation *find_allocation(const void *pointer);
bool is_ours(const void *pointer);
/* Return where this process may read and write what `pointer` points to. */
void *writable(const void *pointer);
void *allocate(size_t bytes, enum kind kind, size_t alignment);
cudaError_t release(void *pointer, enum kind kind);
void begin_memory(int file); /* of the region; -1: make one */
/* Return where the device sees memory that cudaHostRegister was called for; other pointers unchanged. */
void *on_device(const void *pointer);
/* What the server placed there: a module's variable. */
void note_variable(uint64_t start, uint64_t bytes, bool is_constant);

/* --------------------------------------------------------------------------------------- the whole state */

struct machine { /* what the server says of the GPU that it stands for */
    char name[256];
    bool is_known;
    double launch_seconds, copy_seconds, pageable_copy_seconds, pinned_rate, pageable_rate, device_rate; /* rates: bytes per second */
    size_t memory_bytes;
    struct cudaDeviceProp properties;
};

extern struct machine machine;
extern pthread_mutex_t lock; /* recursive: one call at a time */
extern bool is_checked;      /* `labkit check` runs the program */
extern bool is_watched;      /* or `labkit profile` */
extern bool is_recorded;     /* the server keeps what the program does: see note() */

const struct machine *the_machine(void);
uint64_t heap_bytes(void); /* that kernels may allocate */
bool heap_is_made(void);

/* ------------------------------------------------------------------------------------------------ errors */

/* Begin a call: take the lock and note who calls. Every served function of the runtime begins so, and ends with
   `return done(code)`. SYNCHRONISES: an error of an earlier kernel shows here, as on a GPU. */
#define BEGIN() begin_call(__func__ + 4, __builtin_return_address(0))
#define BEGIN_SYNCHRONISING()                                                                                \
    do {                                                                                                     \
        cudaError_t earlier_ = BEGIN();                                                                      \
        show_pending();                                                                                      \
        (void)earlier_;                                                                                      \
        if (sticky_error())                                                                                  \
            return done(sticky_error());                                                                     \
    } while (0)
#define BEGIN_CALL()                                                                                         \
    do {                                                                                                     \
        if (BEGIN())                                                                                         \
            return done(sticky_error());                                                                     \
    } while (0)

cudaError_t begin_call(const char *function, void *caller);
cudaError_t done(cudaError_t code);
void end_with(cudaError_t code, const char *name); /* `done` of the driver's calls, whose errors have other names */
bool uses_runtime(void); /* has anything but the driver's interface been called? Then there is a context */
const char *error_text(cudaError_t code);
const char *driver_error_name(cudaError_t code); /* NULL for a number that is none */
void end_call(void); /* what `done` does for calls that return other types */
void report_failure(const char *name, const char *text); /* tell labkit check of the error that a call returns */
cudaError_t sticky_error(void);
void show_pending(void);
void set_pending(cudaError_t code); /* a kernel has failed: it shows at the next call that synchronises */
bool has_pending(void);
void note_sites(void *caller);
void use_sites(const uint64_t *earlier); /* instead of those that BEGIN has noted */
const uint64_t *call_sites(void); /* the SITES return addresses that lead to the call that is going on */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr */
cudaError_t refuse(const char *what); /* not served: says so, and returns cudaErrorNotSupported */

/* ---------------------------------------------------------------------------------------------- the wire */

enum request {
    LOAD = 1,
    KERNEL = 2,
    FIND_VARIABLE = 3,
    LAUNCH = 4,
    RESOURCES = 5,
    OCCUPANCY = 6,
    MACHINE = 7,
    FAILED_CALL = 8,
    LOOKED = 14, /* the program has asked for its last error */
    LAST = 9, /* the program has come to its end */
    ARRAY = 10,
    OBJECT = 11,
    DESTROY = 12,
    LIBRARY_CALL = 13,
    NOTED = 15,
    FREED = 18, /* memory is about to be freed */
    UNWRITTEN = 17, /* a copy to the host reads what nobody has written */
    ORDER = 19, /* work is enqueued, or somebody waits: see waits.c */
    LEFT = 16, /* what is allocated now is about to be swept away */
};

enum note { SPAN = 1, COPIED = 2, EVENT = 3, ELAPSED = 4, RETURNED = 5 };
enum { CHECKED = 1, WATCHED = 2, RECORDED = 4 }; /* the table's flags */

struct message { /* bytes that grow */
    unsigned char *data;
    size_t length, room, read;
};

void put(struct message *message, const void *data, size_t bytes);
void put_u32(struct message *message, uint32_t number);
void put_u64(struct message *message, uint64_t number);
void put_text(struct message *message, const char *text); /* its length as u32, and the text */
void get(struct message *message, void *data, size_t bytes);
uint32_t get_u32(struct message *message);
uint64_t get_u64(struct message *message);
double get_double(struct message *message);
/* Have the server keep what has happened: a kind of note, and its numbers. Only called where `is_recorded`. */
void note(enum note kind, const uint64_t *numbers, size_t count, const double *times, size_t time_count);
/* Send a request and replace `message` by the answer. False: the server is gone, and has said why. */
bool ask(enum request request, struct message *message);
void forget(struct message *message);
void begin_server(void);
void end_server(void);

/* ---------------------------------------------------------------------------------- kernels and variables */

struct kernel { /* what the server says of a kernel, asked once */
    const void *host;
    char *name;
    uint32_t module;
    bool is_known;
    uint32_t number; /* the server's */
    uint32_t parameter_count, parameter_bytes;
    uint32_t *offsets, *sizes;
    uint32_t max_threads, static_shared, cluster[3];
    bool is_cooperative;
    bool has_resources;
    uint32_t registers, local_bytes;
    int max_dynamic_shared; /* that cudaFuncSetAttribute allowed */
    int carveout;
};

/* Return the kernel of a host function, with what is known of it; NULL where there is none, and why. */
struct kernel *find_kernel(const void *host, cudaError_t *why);
bool know_resources(struct kernel *kernel);
cudaError_t launch(struct kernel *kernel, dim3 grid, dim3 block, const void *parameters, size_t shared,
                   cudaStream_t stream, bool is_cooperative);
void pack(const struct kernel *kernel, void *const *arguments, void *parameters);
/* Modules that a program loads itself, by the driver's interface. `load_module` copies the image: PTX, or a fat binary. */
struct module;
struct module *load_module(const void *image, cudaError_t *why);
bool unload_module(struct module *module); /* false: there is none */
struct kernel *kernel_of_module(struct module *module, const char *name, cudaError_t *why);
void *variable_of_module(struct module *module, const char *name, size_t *bytes);
/* Return the memory of a variable that the program names by its host twin; NULL where there is none. */
void *symbol(const void *host, size_t *bytes);

/* -------------------------------------------------------------------------------------- streams and time */

/* Time in a program without a GPU is a model: each stream has a clock, in seconds. */
cudaError_t check_stream(cudaStream_t stream);
void time_kernel(cudaStream_t stream, double seconds, double share);
void time_copy(cudaStream_t stream, size_t bytes, enum cudaMemcpyKind kind, bool is_pinned, bool blocks_host);
void host_waits_for_all(void);
bool is_timed(void); /* has the program recorded an event so far? */

/* ------------------------------------------------------------------------------------ missing waits */

enum order { /* what simt/programs/server/waits.py hears of, and its numbers */
    STREAM_MADE = 1, /* stream, whether it is free from the default stream */
    STREAM_GONE = 2,
    RAN = 3,   /* stream: the launch before has ended */
    MOVED = 4, /* stream, to, its pitch, from (0: memset), its pitch, width, rows */
    EVENT_RECORDED = 5, /* event, stream */
    STREAM_WAITS = 6,   /* stream, event */
    HOST_WAITS_FOR_STREAM = 7,
    HOST_WAITS_FOR_EVENT = 8,
    HOST_WAITS_FOR_ALL = 9,
    HOST_TOUCHED = 10, /* address, whether it writes */
};

bool follows_order(void); /* is there somebody to note it for? */
/* `numbers` are handles as they are for the model of time: the default stream is 0. */
void note_order(enum order kind, const uint64_t *numbers, size_t count);
uint64_t stream_handle(cudaStream_t stream);
bool is_guarded(const void *address, void *context);
/* Run the program's own function in the order of a stream. Whoever waits for what it does has waited for the stream. */
void run_on_host(cudaStream_t stream, void (*run)(void *), void *data);

/* ------------------------------------------------------------------------------------------- graphs */

/* While a stream captures, keep work for its graph and return true: `run` gets a copy of `data` when the graph is
   launched. */
bool keep_for_graph(cudaStream_t stream, void (*run)(const void *data, cudaStream_t stream), const void *data,
                    size_t bytes);
bool is_capturing(cudaStream_t stream);

struct reserved { /* memory of a graph: see memory.c */
    void *start;
    size_t bytes;
};
void *reserve(size_t bytes);
void run_allocation(const void *data, cudaStream_t stream);
void run_freeing(const void *data, cudaStream_t stream);

#endif
