/* Names that earlier CUDA had and CUDA 13 has no longer, so that older programs build unchanged. */
#ifndef LABKIT_COMPATIBLE_H
#define LABKIT_COMPATIBLE_H
#if defined(__CUDACC__) && defined(__cplusplus)
#include <cuda_runtime.h>
#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
#endif
#endif
