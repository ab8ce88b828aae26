// rmsnorm_half: rows of half, two per load; root mean square in float, one block per row
// launch: rmsnorm<64>; grid 4; block 64
// args: out out float16[4,96] nan; in in float16[4,96] normal; in gain float16[96] uniform(0.5,1.5); n int32 96
#include <cuda_fp16.h>

template <int THREADS>
__global__ void rmsnorm(half2* out, const half2* in, const half2* gain, int n) {
    static_assert(THREADS % 32 == 0, "whole warps");
    __shared__ float partial[THREADS / 32];
    int pairs = n / 2;
    const half2* row = in + blockIdx.x * pairs;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += THREADS) {
        float2 v = __half22float2(row[i]);
        squares = fmaf(v.x, v.x, fmaf(v.y, v.y, squares));
    }
#pragma unroll
    for (int offset = 16; offset >= 1; offset >>= 1) squares += __shfl_down_sync(0xffffffffu, squares, offset);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = squares;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) total += partial[w];
    float scale = rsqrtf(total / n + 1e-6f);
    for (int i = threadIdx.x; i < pairs; i += THREADS) {
        float2 v = __half22float2(row[i]), g = __half22float2(gain[i]);
        out[blockIdx.x * pairs + i] = __floats2half2_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}
