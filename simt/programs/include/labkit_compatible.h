/* Names that earlier CUDA had and CUDA 13 has no longer, so that older programs build unchanged. */
#ifndef LABKIT_COMPATIBLE_H
#define LABKIT_COMPATIBLE_H
#if defined(__CUDACC__) && defined(__cplusplus)
#include <cuda_runtime.h>
#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig
#define cudaThreadSetLimit cudaDeviceSetLimit

#if CUDART_VERSION >= 13000
/* The properties of a device with the fields that CUDA 13 has removed: they are attributes now. */
struct labkitDeviceProp : cudaDeviceProp {
    int clockRate, memoryClockRate; /* kHz */
    int deviceOverlap, kernelExecTimeoutEnabled, computeMode, maxTexture1DLinear;
    int singleToDoublePrecisionPerfRatio, cooperativeMultiDeviceLaunch;
};
static inline cudaError_t cudaGetDeviceProperties(labkitDeviceProp *properties, int device) {
    *properties = labkitDeviceProp();
    const cudaError_t error = cudaGetDeviceProperties(static_cast<cudaDeviceProp *>(properties), device);
    if (error != cudaSuccess)
        return error;
    cudaDeviceGetAttribute(&properties->clockRate, cudaDevAttrClockRate, device);
    cudaDeviceGetAttribute(&properties->memoryClockRate, cudaDevAttrMemoryClockRate, device);
    cudaDeviceGetAttribute(&properties->deviceOverlap, cudaDevAttrGpuOverlap, device);
    cudaDeviceGetAttribute(&properties->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout, device);
    cudaDeviceGetAttribute(&properties->computeMode, cudaDevAttrComputeMode, device);
    cudaDeviceGetAttribute(&properties->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth, device);
    cudaDeviceGetAttribute(&properties->singleToDoublePrecisionPerfRatio,
                           cudaDevAttrSingleToDoublePrecisionPerfRatio, device);
    return cudaSuccess;
}
#define cudaDeviceProp labkitDeviceProp

/* Until CUDA 12 a device's number said where managed memory should be. */
static inline cudaMemLocation labkitLocation(int device) {
    cudaMemLocation location = {};
    location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = device == cudaCpuDeviceId ? 0 : device;
    return location;
}
static inline cudaError_t cudaMemPrefetchAsync(const void *start, size_t bytes, int device, cudaStream_t stream = 0) {
    return cudaMemPrefetchAsync(start, bytes, labkitLocation(device), 0, stream);
}
static inline cudaError_t cudaMemAdvise(const void *start, size_t bytes, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(start, bytes, advice, labkitLocation(device));
}
#endif
#endif
#endif
