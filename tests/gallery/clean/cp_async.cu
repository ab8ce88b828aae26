// cp_async: tiles come by asynchronous copies, one on its way while one is used
// launch: scale; grid 2; block 32
// args: out out float32[2,4,128] nan; in in float32[2,4,128] uniform
#include <cuda_pipeline.h>
extern "C" __global__ void scale(float* out, const float* in) {
    __shared__ __align__(16) float s[2][128];
    int t = threadIdx.x, base = blockIdx.x * 512;
    __pipeline_memcpy_async(&s[0][4 * t], &in[base + 4 * t], 16);
    __pipeline_commit();
    for (int step = 0; step < 4; step++) {
        if (step < 3) __pipeline_memcpy_async(&s[(step + 1) % 2][4 * t], &in[base + 128 * (step + 1) + 4 * t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int k = t; k < 128; k += 32) out[base + 128 * step + k] = 2.0f * s[step % 2][127 - k];
        __syncthreads();
    }
}
