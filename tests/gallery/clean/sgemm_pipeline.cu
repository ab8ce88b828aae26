// sgemm_pipeline: three stages of tiles filled by cp.async; the loads of two rounds are under way during the products
// launch: sgemm; grid 2 2; block 16 16
// args: out C float32[32,32] nan; in A float32[32,80] uniform; in B float32[80,32] uniform; N int32 32; K int32 80
#include <cuda_pipeline.h>
constexpr int TILE = 16, STAGES = 3;

extern "C" __global__ void sgemm(float* C, const float* A, const float* B, int N, int K) {
    __shared__ alignas(16) float As[STAGES][TILE][TILE], Bs[STAGES][TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    auto fetch = [&](int tile) {
        if (tile * TILE < K) {
            __pipeline_memcpy_async(&As[tile % STAGES][ty][tx], A + row * K + tile * TILE + tx, sizeof(float));
            __pipeline_memcpy_async(&Bs[tile % STAGES][ty][tx], B + (tile * TILE + ty) * N + col, sizeof(float));
        }
        __pipeline_commit();
    };
    for (int t = 0; t < STAGES - 1; ++t) fetch(t);
    float sum = 0;
    for (int t = 0; t * TILE < K; ++t) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        fetch(t + STAGES - 1);
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += As[t % STAGES][ty][k] * Bs[t % STAGES][k][tx];
    }
    C[row * N + col] = sum;
}
