/* CUDA arrays, textures and surfaces, and copies in three dimensions.

   A CUDA array lies in the region, row after row; what a kernel reads through a texture is the server's matter. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

struct cudaArray {
    struct cudaChannelFormatDesc format;
    struct cudaExtent extent; /* as given: 0 for a dimension that it has not */
    unsigned flags;
    size_t texel, pitch; /* bytes */
    void *memory;
    uint32_t number; /* the server's */
};

extern cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                           size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream, bool is_async);

static size_t at_least_1(size_t size) { return size ? size : 1; }

SERVED(struct cudaChannelFormatDesc, cudaCreateChannelDesc,
       (int x, int y, int z, int w, enum cudaChannelFormatKind kind)) {
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

static void put_format(struct message *message, const struct cudaChannelFormatDesc *format) {
    uint32_t numbers[5] = {format->x, format->y, format->z, format->w, format->f};
    put(message, numbers, sizeof numbers);
}

/* Ask the server; its first number is an error of CUDA, its second what was asked for. */
static cudaError_t ask_for(enum request request, struct message *message, uint32_t *number) {
    cudaError_t code = cudaErrorUnknown;
    if (ask(request, message)) {
        code = get_u32(message);
        *number = get_u32(message);
    }
    forget(message);
    return code;
}

static cudaError_t make_array(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                              struct cudaExtent extent, unsigned flags) {
    if (!array || !format || !extent.width)
        return cudaErrorInvalidValue;
    struct cudaArray *made = calloc(1, sizeof *made);
    *made = (struct cudaArray){*format, extent, flags, 0, 0, NULL, 0};
    made->texel = (size_t)(format->x + format->y + format->z + format->w) / 8;
    made->pitch = made->texel * extent.width;
    size_t bytes = made->pitch * at_least_1(extent.height) * at_least_1(extent.depth);
    made->memory = allocate(bytes, DEVICE, 512);
    if (!made->memory) {
        free(made);
        return cudaErrorMemoryAllocation;
    }
    struct message message = {0};
    put_u64(&message, (uint64_t)made->memory);
    put_format(&message, format);
    uint32_t sizes[4] = {(uint32_t)extent.width, (uint32_t)extent.height, (uint32_t)extent.depth, flags};
    put(&message, sizes, sizeof sizes);
    cudaError_t code = ask_for(ARRAY, &message, &made->number);
    *array = made;
    return code;
}

SERVED(cudaError_t, cudaMallocArray,
       (cudaArray_t * array, const struct cudaChannelFormatDesc *format, size_t width, size_t height,
        unsigned flags)) {
    BEGIN_CALL();
    return done(make_array(array, format, (struct cudaExtent){width, height, 0}, flags));
}

SERVED(cudaError_t, cudaMalloc3DArray,
       (cudaArray_t * array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
        unsigned flags)) {
    BEGIN_CALL();
    return done(make_array(array, format, extent, flags));
}

SERVED(cudaError_t, cudaFreeArray, (cudaArray_t array)) {
    BEGIN_SYNCHRONISING();
    if (!array)
        return done(cudaSuccess);
    struct message message = {0};
    uint32_t nothing;
    put_u32(&message, 0);
    put_u64(&message, array->number);
    cudaError_t code = ask_for(DESTROY, &message, &nothing);
    release(array->memory, DEVICE);
    free(array);
    return done(code);
}

SERVED(cudaError_t, cudaGetChannelDesc, (struct cudaChannelFormatDesc * format, cudaArray_const_t array)) {
    BEGIN_CALL();
    if (!format || !array)
        return done(cudaErrorInvalidValue);
    *format = array->format;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaArrayGetInfo,
       (struct cudaChannelFormatDesc * format, struct cudaExtent *extent, unsigned *flags, cudaArray_t array)) {
    BEGIN_CALL();
    if (!array)
        return done(cudaErrorInvalidValue);
    if (format)
        *format = array->format;
    if (extent)
        *extent = array->extent;
    if (flags)
        *flags = array->flags;
    return done(cudaSuccess);
}

/* ---------------------------------------------------------------------------------------------- copies */

/* Return the place of a byte of an array's row, in a layer; NULL beyond its end. */
static char *in_array(const struct cudaArray *array, size_t x, size_t y, size_t z, size_t bytes, size_t rows) {
    if (!array || x + bytes > array->pitch || y + rows > at_least_1(array->extent.height) ||
        z >= at_least_1(array->extent.depth))
        return NULL;
    return (char *)array->memory + (z * at_least_1(array->extent.height) + y) * array->pitch + x;
}

SERVED(cudaError_t, cudaMemcpy2DToArray,
       (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    char *target = in_array(to, x, y, 0, width, height);
    (void)kind;
    return done(target ? copy_2d(target, to->pitch, from, pitch, width, height, cudaMemcpyDefault, 0, false)
                       : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaMemcpy2DToArrayAsync,
       (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind, cudaStream_t stream)) {
    BEGIN_CALL();
    char *target = in_array(to, x, y, 0, width, height);
    (void)kind;
    return done(target ? copy_2d(target, to->pitch, from, pitch, width, height, cudaMemcpyDefault, stream, true)
                       : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaMemcpy2DFromArray,
       (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
        enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    char *source = in_array(from, x, y, 0, width, height);
    (void)kind;
    return done(source ? copy_2d(to, pitch, source, from->pitch, width, height, cudaMemcpyDefault, 0, false)
                       : cudaErrorInvalidValue);
}

/* Earlier CUDA's copy of bytes that run on from row to row. */
static cudaError_t copy_flat(const struct cudaArray *array, size_t x, size_t y, const void *outside, size_t bytes,
                             bool is_to_array) {
    if (!array)
        return cudaErrorInvalidValue;
    size_t start = y * array->pitch + x, room = array->pitch * at_least_1(array->extent.height);
    if (start > room || bytes > room - start)
        return cudaErrorInvalidValue;
    char *inside = (char *)array->memory + start;
    return is_to_array ? copy_2d(inside, bytes, outside, bytes, bytes, 1, cudaMemcpyDefault, 0, false)
                       : copy_2d((void *)outside, bytes, inside, bytes, bytes, 1, cudaMemcpyDefault, 0, false);
}

SERVED(cudaError_t, cudaMemcpyToArray,
       (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    (void)kind;
    return done(copy_flat(to, x, y, from, bytes, true));
}

SERVED(cudaError_t, cudaMemcpyFromArray,
       (void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind)) {
    BEGIN_SYNCHRONISING();
    (void)kind;
    return done(copy_flat(from, x, y, to, bytes, false));
}

static char *in_pitched(struct cudaPitchedPtr pointer, size_t x, size_t y, size_t z) {
    return (char *)pointer.ptr + (z * pointer.ysize + y) * pointer.pitch + x;
}

cudaError_t copy_3d(const struct cudaMemcpy3DParms *copy, cudaStream_t stream, bool is_async) {
    const struct cudaArray *to = copy->dstArray, *from = copy->srcArray;
    /* With an array in it, widths count texels, not bytes. */
    size_t texel = to ? to->texel : from ? from->texel : 1, width = copy->extent.width * texel;
    size_t to_x = copy->dstPos.x * (to ? texel : 1), from_x = copy->srcPos.x * (from ? texel : 1);
    for (size_t z = 0; z < copy->extent.depth; z++) {
        size_t rows = copy->extent.height;
        char *target = to ? in_array(to, to_x, copy->dstPos.y, copy->dstPos.z + z, width, rows)
                          : in_pitched(copy->dstPtr, to_x, copy->dstPos.y, copy->dstPos.z + z);
        char *source = from ? in_array(from, from_x, copy->srcPos.y, copy->srcPos.z + z, width, rows)
                            : in_pitched(copy->srcPtr, from_x, copy->srcPos.y, copy->srcPos.z + z);
        if (!target || !source)
            return cudaErrorInvalidValue;
        cudaError_t code = copy_2d(target, to ? to->pitch : copy->dstPtr.pitch, source,
                                   from ? from->pitch : copy->srcPtr.pitch, width, rows,
                                   to || from ? cudaMemcpyDefault : copy->kind, stream, is_async);
        if (code)
            return code;
    }
    return cudaSuccess;
}

SERVED(cudaError_t, cudaMemcpy3D, (const struct cudaMemcpy3DParms *copy)) {
    BEGIN_SYNCHRONISING();
    return done(copy ? copy_3d(copy, 0, false) : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(copy ? copy_3d(copy, stream, true) : cudaErrorInvalidValue);
}

/* -------------------------------------------------------------------------------- textures and surfaces */

enum made { OF_ARRAY = 0, LINEAR = 2, PITCHED = 3 }; /* as CUDA numbers kinds of resources */

static cudaError_t put_resource(struct message *message, const struct cudaResourceDesc *resource) {
    put_u32(message, resource->resType);
    if (resource->resType == cudaResourceTypeArray) {
        if (!resource->res.array.array)
            return cudaErrorInvalidValue;
        put_u32(message, resource->res.array.array->number);
        return cudaSuccess;
    }
    const void *pointer;
    if (resource->resType == cudaResourceTypeLinear) {
        pointer = resource->res.linear.devPtr;
        put_u64(message, (uint64_t)pointer);
        put_format(message, &resource->res.linear.desc);
        put_u64(message, resource->res.linear.sizeInBytes);
    } else if (resource->resType == cudaResourceTypePitch2D) {
        pointer = resource->res.pitch2D.devPtr;
        put_u64(message, (uint64_t)pointer);
        put_format(message, &resource->res.pitch2D.desc);
        put_u64(message, resource->res.pitch2D.width);
        put_u64(message, resource->res.pitch2D.height);
        put_u64(message, resource->res.pitch2D.pitchInBytes);
    } else {
        return refuse("a texture of a mipmapped array");
    }
    return find_allocation(pointer) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t make_object(unsigned long long *object, const struct cudaResourceDesc *resource,
                               const struct cudaTextureDesc *how) {
    if (!object || !resource)
        return cudaErrorInvalidValue;
    struct message message = {0};
    put_u32(&message, how != NULL);
    if (how) {
        uint32_t numbers[8] = {how->addressMode[0], how->addressMode[1],   how->addressMode[2], how->filterMode,
                               how->readMode,       how->normalizedCoords, how->sRGB,           how->maxAnisotropy};
        put(&message, numbers, sizeof numbers);
        for (int i = 0; i < 4; i++) {
            double colour = how->borderColor[i];
            put(&message, &colour, sizeof colour);
        }
    }
    cudaError_t code = put_resource(&message, resource);
    uint32_t number = 0;
    if (code)
        forget(&message);
    else
        code = ask_for(OBJECT, &message, &number);
    *object = number;
    return code;
}

SERVED(cudaError_t, cudaCreateTextureObject,
       (cudaTextureObject_t * texture, const struct cudaResourceDesc *resource, const struct cudaTextureDesc *how,
        const struct cudaResourceViewDesc *view)) {
    BEGIN_CALL();
    if (view)
        return done(refuse("a texture with a resource view"));
    return done(how ? make_object(texture, resource, how) : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaCreateSurfaceObject,
       (cudaSurfaceObject_t * surface, const struct cudaResourceDesc *resource)) {
    BEGIN_CALL();
    return done(make_object(surface, resource, NULL));
}

static cudaError_t destroy_object(uint64_t object) {
    struct message message = {0};
    uint32_t nothing;
    put_u32(&message, 1);
    put_u64(&message, object);
    return ask_for(DESTROY, &message, &nothing);
}

SERVED(cudaError_t, cudaDestroyTextureObject, (cudaTextureObject_t texture)) {
    BEGIN_CALL();
    return done(destroy_object(texture));
}

SERVED(cudaError_t, cudaDestroySurfaceObject, (cudaSurfaceObject_t surface)) {
    BEGIN_CALL();
    return done(destroy_object(surface));
}
