/* Copies in three dimensions. */
#include "runtime.h"

extern cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                           size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream, bool is_async);

static char *place(struct cudaPitchedPtr pointer, struct cudaPos at, size_t z) {
    return (char *)pointer.ptr + ((at.z + z) * pointer.ysize + at.y) * pointer.pitch + at.x;
}

cudaError_t copy_3d(const struct cudaMemcpy3DParms *copy, cudaStream_t stream, bool is_async) {
    if (copy->srcArray || copy->dstArray)
        return refuse("cudaMemcpy3D of a cudaArray");
    for (size_t z = 0; z < copy->extent.depth; z++) {
        cudaError_t code = copy_2d(place(copy->dstPtr, copy->dstPos, z), copy->dstPtr.pitch,
                                   place(copy->srcPtr, copy->srcPos, z), copy->srcPtr.pitch, copy->extent.width,
                                   copy->extent.height, copy->kind, stream, is_async);
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
