/* Memory in the order of a stream, and the pools that it comes from. All of it comes from the same memory here. */
#include "runtime.h"

#include <stdlib.h>

extern cudaError_t allocated(void **pointer, size_t bytes, enum kind kind); /* memory.c */

struct CUmemPoolHandle_st {
    uint64_t values[8]; /* by attribute, from 1 on */
};
static struct CUmemPoolHandle_st default_pool = {{0, 1, 1, 1}}, *current = &default_pool;

static cudaError_t allocate_in_order(void **pointer, size_t bytes, cudaStream_t stream) {
    cudaError_t code = check_stream(stream);
    if (code || !bytes || !pointer)
        return code ? code : allocated(pointer, bytes, DEVICE);
    if (!is_capturing(stream))
        return allocated(pointer, bytes, DEVICE);
    struct reserved kept = {reserve(bytes), bytes};
    *pointer = kept.start;
    if (!kept.start)
        return cudaErrorMemoryAllocation;
    keep_for_graph(stream, run_allocation, &kept, sizeof kept);
    return cudaSuccess;
}

SERVED(cudaError_t, cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(allocate_in_order(pointer, bytes, stream));
}

SERVED(cudaError_t, cudaMallocFromPoolAsync,
       (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(pool ? allocate_in_order(pointer, bytes, stream) : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaFreeAsync, (void *pointer, cudaStream_t stream)) {
    BEGIN_CALL();
    cudaError_t code = check_stream(stream);
    struct reserved kept = {pointer, 0};
    if (!code && keep_for_graph(stream, run_freeing, &kept, sizeof kept))
        return done(cudaSuccess);
    return done(code ? code : release(pointer, DEVICE));
}

static cudaError_t give_pool(cudaMemPool_t *pool, int device, struct CUmemPoolHandle_st *given) {
    if (device || !pool)
        return device ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    *pool = given;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device)) {
    BEGIN_CALL();
    return done(give_pool(pool, device, &default_pool));
}

SERVED(cudaError_t, cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device)) {
    BEGIN_CALL();
    return done(give_pool(pool, device, current));
}

SERVED(cudaError_t, cudaDeviceSetMemPool, (int device, cudaMemPool_t pool)) {
    BEGIN_CALL();
    if (device || !pool)
        return done(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    current = pool;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties)) {
    BEGIN_CALL();
    if (!pool || !properties || properties->location.id)
        return done(cudaErrorInvalidValue);
    if (properties->handleTypes != cudaMemHandleTypeNone)
        return done(refuse("a memory pool that other processes share"));
    *pool = malloc(sizeof **pool);
    **pool = (struct CUmemPoolHandle_st){{0, 1, 1, 1}};
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaMemPoolDestroy, (cudaMemPool_t pool)) {
    BEGIN_CALL();
    if (!pool || pool == &default_pool)
        return done(cudaErrorInvalidValue);
    if (current == pool)
        current = &default_pool;
    free(pool);
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes)) {
    BEGIN_CALL();
    (void)bytes;
    return done(pool ? cudaSuccess : cudaErrorInvalidValue);
}

/* Return how many bytes of device memory are in use. */
static uint64_t used(void) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < allocations->count; i++)
        if (allocations->rows[i].kind == DEVICE)
            bytes += allocations->rows[i].bytes;
    return bytes;
}

SERVED(cudaError_t, cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)) {
    BEGIN_CALL();
    if (!pool || !value || attribute < 1 || attribute > cudaMemPoolAttrUsedMemHigh)
        return done(cudaErrorInvalidValue);
    if (attribute == cudaMemPoolAttrReleaseThreshold)
        pool->values[attribute] = *(uint64_t *)value;
    else if (attribute < cudaMemPoolAttrReleaseThreshold)
        pool->values[attribute] = (uint64_t) * (int *)value;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)) {
    BEGIN_CALL();
    if (!pool || !value || attribute < 1 || attribute > cudaMemPoolAttrUsedMemHigh)
        return done(cudaErrorInvalidValue);
    if (attribute < cudaMemPoolAttrReleaseThreshold)
        *(int *)value = (int)pool->values[attribute];
    else
        *(uint64_t *)value = attribute == cudaMemPoolAttrReleaseThreshold ? pool->values[attribute] : used();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceGetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType kind, void *value)) {
    BEGIN_CALL();
    (void)kind;
    if (device || !value)
        return done(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    *(uint64_t *)value = used();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceGraphMemTrim, (int device)) {
    BEGIN_CALL();
    return done(device ? cudaErrorInvalidDevice : cudaSuccess);
}

SERVED(cudaError_t, cudaCtxResetPersistingL2Cache, (void)) {
    BEGIN_CALL();
    return done(cudaSuccess);
}
