/* cudaProfilerStart and cudaProfilerStop, which NVIDIA's wheels leave out. */
#ifndef LABKIT_CUDA_PROFILER_API_H
#define LABKIT_CUDA_PROFILER_API_H
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif
extern __host__ cudaError_t CUDARTAPI cudaProfilerStart(void);
extern __host__ cudaError_t CUDARTAPI cudaProfilerStop(void);
#ifdef __cplusplus
}
#endif
#endif
