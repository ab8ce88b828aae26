/* The driver's interface, with the call of cuCtxCreate as programs have it that were written before CUDA 13. */
#include_next <cuda.h>
#ifndef LABKIT_CUDA_H
#define LABKIT_CUDA_H
#if defined(__cplusplus) && CUDA_VERSION >= 13000
static inline CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    return cuCtxCreate(context, (CUctxCreateParams *)0, flags, device);
}
#endif
#endif
