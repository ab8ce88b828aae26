/* Streams, events, and the model of time.

   Work is done at the call that asks for it: that is one of the orders that CUDA allows. When it would have been
   done on the GPU is a model: each stream has a clock, copies wait for one of two copy engines, and kernels run
   side by side as far as the GPU has room. The host's own work takes no time in it. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    void (*run)(const void *, cudaStream_t);
    void *data;
    size_t bytes;
    const struct node *origin; /* in the graph that this node's graph was made of */
    struct node *next;
};

struct CUgraph_st {
    struct node *first, **last;
    size_t count;
};

struct CUstream_st {
    double ready;  /* when its work so far is done, in seconds of the model */
    bool is_free;  /* from the default stream: cudaStreamNonBlocking */
    unsigned flags;
    int priority;
    struct CUgraph_st *captures;
    struct CUstream_st *origin; /* the stream whose capture this one has joined */
    struct CUstream_st *next;
};

struct CUevent_st {
    double time;
    bool is_recorded, is_untimed;
    struct CUstream_st *captured_in;
};

struct running {
    double end, share;
};

#define KERNEL_SPAN 100

static struct CUstream_st default_stream, *streams;
static double host_time, to_device_ready, from_device_ready;
static struct running running[256];
static bool has_recorded, has_told;

static bool is_default(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

static struct CUstream_st *the_stream(cudaStream_t stream) {
    if (is_default(stream) || stream == cudaStreamPerThread)
        return &default_stream;
    return stream;
}

cudaError_t check_stream(cudaStream_t stream) {
    if (is_default(stream) || stream == cudaStreamPerThread)
        return cudaSuccess;
    for (struct CUstream_st *each = streams; each; each = each->next)
        if (each == stream)
            return cudaSuccess;
    return cudaErrorInvalidResourceHandle;
}

uint64_t stream_handle(cudaStream_t stream) {
    struct CUstream_st *own = the_stream(stream);
    return own == &default_stream ? 0 : (uint64_t)own;
}

bool is_timed(void) { return has_recorded; }

/* Return when work given to a stream now may begin. The default stream waits for all others, and they for it. */
static double begins(cudaStream_t stream) {
    struct CUstream_st *own = the_stream(stream);
    double start = own->ready > host_time ? own->ready : host_time;
    if (own == &default_stream) {
        for (struct CUstream_st *each = streams; each; each = each->next)
            if (!each->is_free && each->ready > start)
                start = each->ready;
    } else if (!own->is_free && default_stream.ready > start) {
        start = default_stream.ready;
    }
    return start;
}

/* kind: a cudaMemcpyKind, or one that none has for a kernel */
static void note_span(uint64_t kind, cudaStream_t stream, double begin, double end) {
    if (is_recorded)
        note(SPAN, (uint64_t[]){kind, (uint64_t)the_stream(stream)}, 2, (double[]){begin, end}, 2);
}

static double largest(double a, double b) { return a > b ? a : b; }

/* Return the earliest time from `start` on at which the running kernels leave room for this share of the GPU. */
static double room_from(double start, double share) {
    for (;;) {
        double used = 0, next = 0;
        for (size_t i = 0; i < sizeof running / sizeof *running; i++)
            if (running[i].end > start) {
                used += running[i].share;
                if (next == 0 || running[i].end < next)
                    next = running[i].end;
            }
        if (next == 0 || used + share <= 1.0001)
            return start;
        start = next;
    }
}

void time_kernel(cudaStream_t stream, double seconds, double share) {
    host_time += the_machine()->launch_seconds;
    double start = room_from(begins(stream), share), end = start + seconds;
    the_stream(stream)->ready = end;
    note_span(KERNEL_SPAN, stream, start, end);
    size_t oldest = 0;
    for (size_t i = 1; i < sizeof running / sizeof *running; i++)
        if (running[i].end < running[oldest].end)
            oldest = i;
    running[oldest] = (struct running){end, share};
}

void time_copy(cudaStream_t stream, size_t bytes, enum cudaMemcpyKind kind, bool is_pinned, bool blocks_host) {
    const struct machine *gpu = the_machine();
    double start = begins(stream), rate = is_pinned ? gpu->pinned_rate : gpu->pageable_rate;
    double *engine = kind == cudaMemcpyHostToDevice   ? &to_device_ready
                     : kind == cudaMemcpyDeviceToHost ? &from_device_ready
                                                      : NULL;
    if (kind == cudaMemcpyHostToHost)
        return;
    if (engine)
        start = largest(start, *engine);
    else
        rate = gpu->device_rate;
    double begin = is_pinned || !engine ? gpu->copy_seconds : gpu->pageable_copy_seconds;
    double end = start + begin + (double)bytes / rate;
    if (engine)
        *engine = end;
    the_stream(stream)->ready = end;
    note_span(kind, stream, start, end);
    if (blocks_host)
        host_time = largest(host_time, end);
}

void host_waits_for_all(void) {
    host_time = largest(host_time, default_stream.ready);
    for (struct CUstream_st *each = streams; each; each = each->next)
        host_time = largest(host_time, each->ready);
    note_order(HOST_WAITS_FOR_ALL, NULL, 0);
}

void forget_streams(void) {
    host_waits_for_all();
    default_stream.captures = NULL;
}

/* --------------------------------------------------------------------------------------------- streams */

static cudaError_t create(cudaStream_t *stream, unsigned flags, int priority) {
    if (!stream || flags & ~1u)
        return cudaErrorInvalidValue;
    struct CUstream_st *made = calloc(1, sizeof *made);
    made->flags = flags;
    made->is_free = flags == cudaStreamNonBlocking;
    made->priority = priority;
    made->ready = host_time;
    made->next = streams;
    streams = *stream = made;
    note_order(STREAM_MADE, (uint64_t[]){(uint64_t)made, made->is_free}, 2);
    return cudaSuccess;
}

SERVED(cudaError_t, cudaStreamCreate, (cudaStream_t * stream)) {
    BEGIN_CALL();
    return done(create(stream, 0, 0));
}

SERVED(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags)) {
    BEGIN_CALL();
    return done(create(stream, flags, 0));
}

SERVED(cudaError_t, cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority)) {
    BEGIN_CALL();
    return done(create(stream, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority));
}

SERVED(cudaError_t, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest)) {
    BEGIN_CALL();
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaStreamGetPriority, (cudaStream_t stream, int *priority)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (!code)
        *priority = the_stream(stream)->priority;
    return done(code);
}

SERVED(cudaError_t, cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (!code)
        *flags = the_stream(stream)->flags;
    return done(code);
}

SERVED(cudaError_t, cudaStreamDestroy, (cudaStream_t stream)) {
    BEGIN_CALL();
    for (struct CUstream_st **each = &streams; *each; each = &(*each)->next)
        if (*each == stream) {
            default_stream.ready = largest(default_stream.ready, stream->ready);
            *each = stream->next;
            note_order(STREAM_GONE, (uint64_t[]){(uint64_t)stream}, 1);
            free(stream);
            return done(cudaSuccess);
        }
    return done(cudaErrorInvalidResourceHandle);
}

static void host_waits_for(cudaStream_t stream) {
    host_time = largest(host_time, begins(stream));
    note_order(HOST_WAITS_FOR_STREAM, (uint64_t[]){stream_handle(stream)}, 1);
}

SERVED(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream)) {
    BEGIN_SYNCHRONISING();
    cudaError_t code = check_stream(stream);
    if (!code && the_stream(stream)->captures)
        return done(cudaErrorStreamCaptureUnsupported);
    if (!code)
        host_waits_for(stream);
    return done(code);
}

SERVED(cudaError_t, cudaStreamQuery, (cudaStream_t stream)) {
    BEGIN_SYNCHRONISING();
    cudaError_t code = check_stream(stream);
    if (!code)
        host_waits_for(stream);
    return done(code);
}

SERVED(cudaError_t, cudaDeviceSynchronize, (void)) {
    BEGIN_SYNCHRONISING();
    host_waits_for_all();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaThreadSynchronize, (void)) {
    BEGIN_SYNCHRONISING();
    host_waits_for_all();
    return done(cudaSuccess);
}

struct host_function {
    cudaHostFn_t function;
    void *data;
};

static void run_host_function(const void *data, cudaStream_t stream) {
    const struct host_function *kept = data;
    run_on_host(stream, kept->function, kept->data);
}

SERVED(cudaError_t, cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    struct host_function kept = {function, data};
    if (!code && !keep_for_graph(stream, run_host_function, &kept, sizeof kept))
        run_on_host(stream, function, data);
    return done(code);
}

struct callback {
    cudaStreamCallback_t function;
    cudaStream_t stream;
    void *data;
};

static void run_callback(void *data) {
    const struct callback *kept = data;
    kept->function(kept->stream, cudaSuccess, kept->data);
}

SERVED(cudaError_t, cudaStreamAddCallback,
       (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (flags)
        return done(cudaErrorInvalidValue);
    struct callback kept = {callback, stream, data};
    if (!code)
        run_on_host(stream, run_callback, &kept);
    return done(code);
}

SERVED(cudaError_t, cudaStreamAttachMemAsync,
       (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags)) {
    BEGIN_CALL();
    (void)bytes, (void)flags;
    cudaError_t code = check_stream(stream);
    return done(code ? code : find_allocation(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaStreamSetAttribute,
       (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value)) {
    BEGIN_CALL();
    (void)attribute, (void)value; /* hints on caches and priorities: results do not depend on them */
    return done(check_stream(stream));
}

/* ---------------------------------------------------------------------------------------------- events */

static cudaError_t create_event(cudaEvent_t *event, unsigned flags) {
    if (!event || flags & ~7u)
        return cudaErrorInvalidValue;
    *event = calloc(1, sizeof **event);
    (*event)->is_untimed = flags & cudaEventDisableTiming;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaEventCreate, (cudaEvent_t * event)) {
    BEGIN_CALL();
    return done(create_event(event, 0));
}

SERVED(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags)) {
    BEGIN_CALL();
    return done(create_event(event, flags));
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
    if (!event)
        return cudaErrorInvalidResourceHandle;
    cudaError_t code = check_stream(stream);
    if (code)
        return code;
    struct CUstream_st *own = the_stream(stream);
    event->captured_in = own->captures ? own : NULL;
    event->time = begins(stream);
    event->is_recorded = true;
    if (!own->captures)
        note_order(EVENT_RECORDED, (uint64_t[]){(uint64_t)event, stream_handle(stream)}, 2);
    if (!event->is_untimed)
        has_recorded = true;
    if (is_recorded)
        note(EVENT, (uint64_t[]){(uint64_t)event}, 1, NULL, 0);
    return cudaSuccess;
}

SERVED(cudaError_t, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(record(event, stream));
}

SERVED(cudaError_t, cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(record(event, stream));
}

static void host_waits_for_event(cudaEvent_t event) {
    host_time = largest(host_time, event->time);
    note_order(HOST_WAITS_FOR_EVENT, (uint64_t[]){(uint64_t)event}, 1);
}

SERVED(cudaError_t, cudaEventSynchronize, (cudaEvent_t event)) {
    BEGIN_SYNCHRONISING();
    if (!event)
        return done(cudaErrorInvalidResourceHandle);
    host_waits_for_event(event);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaEventQuery, (cudaEvent_t event)) {
    BEGIN_SYNCHRONISING();
    if (!event)
        return done(cudaErrorInvalidResourceHandle);
    host_waits_for_event(event);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaEventDestroy, (cudaEvent_t event)) {
    BEGIN_CALL();
    if (!event)
        return done(cudaErrorInvalidResourceHandle);
    free(event);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end)) {
    BEGIN_SYNCHRONISING();
    if (!milliseconds)
        return done(cudaErrorInvalidValue);
    if (!start || !end || !start->is_recorded || !end->is_recorded || start->is_untimed || end->is_untimed)
        return done(cudaErrorInvalidResourceHandle);
    if (largest(start->time, end->time) > host_time) /* the host has not waited for them */
        return done(cudaErrorNotReady);
    *milliseconds = (float)((end->time - start->time) * 1e3);
    if (is_recorded)
        note(ELAPSED, (uint64_t[]){(uint64_t)start, (uint64_t)end}, 2, (double[]){start->time, end->time}, 2);
    if (!has_told)
        tell("labkit: no GPU here. Times between events are predicted for an NVIDIA %s; LABKIT_GPU names another",
             the_machine()->name);
    has_told = true;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags)) {
    BEGIN_CALL();
    (void)flags;
    cudaError_t code = check_stream(stream);
    if (!code && !event)
        code = cudaErrorInvalidResourceHandle;
    if (code)
        return done(code);
    struct CUstream_st *own = the_stream(stream);
    if (event->captured_in && !own->captures) { /* the stream joins the capture */
        own->captures = event->captured_in->captures;
        own->origin = event->captured_in->origin ? event->captured_in->origin : event->captured_in;
    }
    if (event->is_recorded)
        own->ready = largest(own->ready, event->time);
    if (!own->captures)
        note_order(STREAM_WAITS, (uint64_t[]){stream_handle(stream), (uint64_t)event}, 2);
    return done(cudaSuccess);
}

/* ---------------------------------------------------------------------------------------------- graphs */

static struct node *append(struct CUgraph_st *graph, void (*run)(const void *, cudaStream_t), const void *data,
                           size_t bytes) {
    struct node *node = calloc(1, sizeof *node);
    node->run = run;
    node->data = malloc(bytes ? bytes : 1);
    node->bytes = bytes;
    memcpy(node->data, data, bytes);
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
    return node;
}

bool keep_for_graph(cudaStream_t stream, void (*run)(const void *, cudaStream_t), const void *data, size_t bytes) {
    if (check_stream(stream))
        return false;
    struct CUstream_st *own = the_stream(stream);
    if (!own->captures)
        return false;
    append(own->captures, run, data, bytes);
    return true;
}

bool is_capturing(cudaStream_t stream) { return the_stream(stream)->captures; }

static struct CUgraph_st *new_graph(void) {
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    graph->last = &graph->first;
    return graph;
}

static struct CUgraph_st *copied(const struct CUgraph_st *graph) {
    struct CUgraph_st *copy = new_graph();
    for (const struct node *node = graph->first; node; node = node->next)
        append(copy, node->run, node->data, node->bytes)->origin = node;
    return copy;
}

static void destroy(struct CUgraph_st *graph) {
    for (struct node *node = graph->first, *next; node; node = next) {
        next = node->next;
        free(node->data);
        free(node);
    }
    free(graph);
}

SERVED(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode)) {
    BEGIN_CALL();
    (void)mode;
    cudaError_t code = check_stream(stream);
    if (code)
        return done(code);
    if (is_default(stream))
        return done(cudaErrorStreamCaptureUnsupported);
    if (the_stream(stream)->captures)
        return done(cudaErrorIllegalState);
    the_stream(stream)->captures = new_graph();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (code)
        return done(code);
    struct CUstream_st *own = the_stream(stream);
    if (!own->captures || own->origin)
        return done(own->captures ? cudaErrorStreamCaptureUnmatched : cudaErrorIllegalState);
    *graph = own->captures;
    for (struct CUstream_st *each = streams; each; each = each->next)
        if (each->captures == *graph) {
            each->captures = NULL;
            each->origin = NULL;
        }
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (!code)
        *status = the_stream(stream)->captures ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return done(code);
}

SERVED(cudaError_t, cudaGraphCreate, (cudaGraph_t * graph, unsigned flags)) {
    BEGIN_CALL();
    if (!graph || flags)
        return done(cudaErrorInvalidValue);
    *graph = new_graph();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGraphDestroy, (cudaGraph_t graph)) {
    BEGIN_CALL();
    if (!graph)
        return done(cudaErrorInvalidValue);
    destroy(graph);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph)) {
    BEGIN_CALL();
    if (!clone || !graph)
        return done(cudaErrorInvalidValue);
    *clone = copied(graph);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)) {
    BEGIN_CALL();
    if (!graph || !count)
        return done(cudaErrorInvalidValue);
    if (nodes) {
        size_t i = 0;
        for (struct node *node = graph->first; node && i < *count; node = node->next)
            nodes[i++] = (cudaGraphNode_t)node;
        *count = i;
    } else {
        *count = graph->count;
    }
    return done(cudaSuccess);
}

static cudaError_t instantiate(cudaGraphExec_t *executable, cudaGraph_t graph) {
    if (!executable || !graph)
        return cudaErrorInvalidValue;
    *executable = (cudaGraphExec_t)copied(graph);
    return cudaSuccess;
}

SERVED(cudaError_t, cudaGraphInstantiate,
       (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(instantiate(executable, graph));
}

SERVED(cudaError_t, cudaGraphInstantiateWithFlags,
       (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(instantiate(executable, graph));
}

SERVED(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    if (code || !executable)
        return done(code ? code : cudaErrorInvalidValue);
    for (struct node *node = ((struct CUgraph_st *)executable)->first; node; node = node->next)
        node->run(node->data, stream);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(executable ? check_stream(stream) : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t executable)) {
    BEGIN_CALL();
    if (!executable)
        return done(cudaErrorInvalidValue);
    destroy((struct CUgraph_st *)executable);
    return done(cudaSuccess);
}

/* Replace the work of an executable graph by another graph's. */
SERVED(cudaError_t, cudaGraphExecUpdate,
       (cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result)) {
    BEGIN_CALL();
    struct CUgraph_st *own = (struct CUgraph_st *)executable;
    if (!own || !graph || !result)
        return done(cudaErrorInvalidValue);
    *result = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateSuccess};
    bool is_alike = own->count == graph->count;
    for (const struct node *a = own->first, *b = graph->first; is_alike && a; a = a->next, b = b->next)
        is_alike = a->run == b->run;
    if (!is_alike) {
        result->result = cudaGraphExecUpdateErrorTopologyChanged;
        return done(cudaErrorGraphExecUpdateFailure);
    }
    struct CUgraph_st *copy = copied(graph), earlier = *own;
    *own = *copy;
    *copy = earlier;
    destroy(copy);
    return done(cudaSuccess);
}

static cudaError_t added(cudaGraphNode_t *node, cudaGraph_t graph, void (*run)(const void *, cudaStream_t),
                         const void *data, size_t bytes) {
    if (!node || !graph)
        return cudaErrorInvalidValue;
    *node = (cudaGraphNode_t)append(graph, run, data, bytes);
    return cudaSuccess;
}

static void run_nothing(const void *data, cudaStream_t stream) { (void)data, (void)stream; }

SERVED(cudaError_t, cudaGraphAddEmptyNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count)) {
    BEGIN_CALL();
    (void)before, (void)count; /* a node comes after those that it depends on, so the order of adding will do */
    return done(added(node, graph, run_nothing, "", 0));
}

SERVED(cudaError_t, cudaGraphAddHostNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        const struct cudaHostNodeParams *parameters)) {
    BEGIN_CALL();
    (void)before, (void)count;
    struct host_function kept = {parameters->fn, parameters->userData};
    return done(added(node, graph, run_host_function, &kept, sizeof kept));
}

struct kernel_node {
    void *function;
    dim3 grid, block;
    size_t shared;
    unsigned char parameters[];
};

static void run_kernel_node(const void *data, cudaStream_t stream) {
    const struct kernel_node *kept = data;
    cudaError_t code;
    struct kernel *kernel = find_kernel(kept->function, &code);
    if (kernel)
        code = launch(kernel, kept->grid, kept->block, kept->parameters, kept->shared, stream, false);
    if (code)
        set_pending(code);
}

/* Return what a node of a kernel keeps, and how many bytes it is; NULL where there is no such kernel. */
static struct kernel_node *kernel_node(const struct cudaKernelNodeParams *parameters, size_t *bytes,
                                       cudaError_t *code) {
    struct kernel *kernel = find_kernel(parameters->func, code);
    if (!kernel)
        return NULL;
    *bytes = sizeof(struct kernel_node) + kernel->parameter_bytes;
    struct kernel_node *kept = calloc(1, *bytes);
    *kept = (struct kernel_node){parameters->func, parameters->gridDim, parameters->blockDim,
                                 parameters->sharedMemBytes};
    if (parameters->kernelParams)
        pack(kernel, parameters->kernelParams, kept->parameters);
    return kept;
}

SERVED(cudaError_t, cudaGraphAddKernelNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        const struct cudaKernelNodeParams *parameters)) {
    BEGIN_CALL();
    (void)before, (void)count;
    cudaError_t code;
    size_t bytes;
    struct kernel_node *kept = kernel_node(parameters, &bytes, &code);
    if (!kept)
        return done(code);
    code = added(node, graph, run_kernel_node, kept, bytes);
    free(kept);
    return done(code);
}

static cudaError_t set_kernel(struct node *node, const struct cudaKernelNodeParams *parameters) {
    cudaError_t code;
    size_t bytes;
    if (!node || !parameters || node->run != run_kernel_node)
        return cudaErrorInvalidValue;
    struct kernel_node *kept = kernel_node(parameters, &bytes, &code);
    if (!kept)
        return code;
    free(node->data);
    node->data = kept;
    node->bytes = bytes;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaGraphKernelNodeSetParams,
       (cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters)) {
    BEGIN_CALL();
    return done(set_kernel((struct node *)node, parameters));
}

SERVED(cudaError_t, cudaGraphExecKernelNodeSetParams,
       (cudaGraphExec_t executable, cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters)) {
    BEGIN_CALL();
    struct node *found = executable ? ((struct CUgraph_st *)executable)->first : NULL;
    while (found && found->origin != (struct node *)node)
        found = found->next;
    return done(set_kernel(found, parameters));
}

SERVED(cudaError_t, cudaGraphAddMemAllocNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        struct cudaMemAllocNodeParams *parameters)) {
    BEGIN_CALL();
    (void)before, (void)count;
    if (!parameters || !parameters->bytesize)
        return done(cudaErrorInvalidValue);
    struct reserved kept = {reserve(parameters->bytesize), parameters->bytesize};
    parameters->dptr = kept.start;
    return done(kept.start ? added(node, graph, run_allocation, &kept, sizeof kept) : cudaErrorMemoryAllocation);
}

SERVED(cudaError_t, cudaGraphAddMemFreeNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count, void *pointer)) {
    BEGIN_CALL();
    (void)before, (void)count;
    struct reserved kept = {pointer, 0};
    return done(pointer ? added(node, graph, run_freeing, &kept, sizeof kept) : cudaErrorInvalidValue);
}

static void run_child(const void *data, cudaStream_t stream) {
    for (const struct node *node = (*(struct CUgraph_st *const *)data)->first; node; node = node->next)
        node->run(node->data, stream);
}

SERVED(cudaError_t, cudaGraphAddChildGraphNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        cudaGraph_t child)) {
    BEGIN_CALL();
    (void)before, (void)count;
    if (!child)
        return done(cudaErrorInvalidValue);
    struct CUgraph_st *kept = copied(child);
    return done(added(node, graph, run_child, &kept, sizeof kept));
}

struct copy_node {
    struct cudaMemcpy3DParms parameters;
};

extern cudaError_t copy_3d(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream, bool is_async);

static void run_copy_node(const void *data, cudaStream_t stream) {
    cudaError_t code = copy_3d(data, stream, true);
    if (code)
        set_pending(code);
}

SERVED(cudaError_t, cudaGraphAddMemcpyNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        const struct cudaMemcpy3DParms *parameters)) {
    BEGIN_CALL();
    (void)before, (void)count;
    return done(added(node, graph, run_copy_node, parameters, sizeof *parameters));
}

SERVED(cudaError_t, cudaGraphAddMemcpyNode1D,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count, void *to,
        const void *from, size_t bytes, enum cudaMemcpyKind kind)) {
    BEGIN_CALL();
    (void)before, (void)count;
    struct cudaMemcpy3DParms parameters = {.srcPtr = {(void *)from, bytes, bytes, 1},
                                           .dstPtr = {to, bytes, bytes, 1},
                                           .extent = {bytes, 1, 1},
                                           .kind = kind};
    return done(added(node, graph, run_copy_node, &parameters, sizeof parameters));
}

static void run_set_node(const void *data, cudaStream_t stream) {
    const struct cudaMemsetParams *set = data;
    (void)stream;
    for (size_t row = 0; row < set->height; row++)
        for (size_t i = 0; i < set->width; i++)
            memcpy((char *)writable(set->dst) + row * set->pitch + i * set->elementSize, &set->value,
                   set->elementSize);
}

SERVED(cudaError_t, cudaGraphAddMemsetNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
        const struct cudaMemsetParams *parameters)) {
    BEGIN_CALL();
    (void)before, (void)count;
    return done(added(node, graph, run_set_node, parameters, sizeof *parameters));
}
