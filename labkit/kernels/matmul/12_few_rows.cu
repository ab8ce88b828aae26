// matmul_12_few_rows.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: where C has few rows, or K is short, memory is the limit and no element is worth keeping in shared
//       memory: each thread reads its columns of B, and its rows of A, straight into registers. Warps of a
//       block, and blocks of a cluster, share K, so that a few columns keep the whole GPU busy, too
// launch: block (32, 8), grid (ceil(ceil(N/(32*THREAD_N))*ceil(M/THREAD_M)*PARTS/8)*CLUSTER); any M, N, K
#ifndef THREAD_M
#define THREAD_M 4  // rows of a thread
#endif
#ifndef THREAD_N
#define THREAD_N 4  // and its columns: 1 or 4
#endif
#ifndef TILE_K
#define TILE_K 8  // rows of B that a thread reads at a time
#endif
#include "gpu_parts.h"
#include "gpu_write.h"
constexpr int COLUMNS = 32 * THREAD_N;  // of a warp
static_assert(THREAD_N == 1 || THREAD_N == 4, "choose 1 or 4 for THREAD_N");

extern "C" __global__ void CLUSTERED __launch_bounds__(32 * WARPS, PER_SM) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    bool by_16_bytes = THREAD_N == 4 && ((size_t)B | (size_t)C | 4 * N) % 16 == 0;  // as rows of B, C begin
    int across = (N + COLUMNS - 1) / COLUMNS, row0 = team() / across * THREAD_M;
    int col0 = team() % across * COLUMNS + threadIdx.x * (by_16_bytes ? 4 : 1);
    float sum[THREAD_M][THREAD_N] = {};
    // Beyond the edges of C a thread repeats the last row or columns, and does not write them.
    auto add = [&](int width, int k0, int count) {
        alignas(16) float b[TILE_K][THREAD_N];
        float a[TILE_K][THREAD_M];
        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            #pragma unroll
            for (int j = 0; j < THREAD_N; j += width)
                if (k >= count)
                    for (int e = 0; e < width; ++e)
                        b[k][j + e] = 0;
                else if (width == 4)
                    *(float4*)b[k] = *(float4*)&B[(k0 + k) * N + min(col0, N - 4)];
                else
                    b[k][j] = B[(k0 + k) * N + min(col0 + 32 * j, N - 1)];
            #pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
                a[k][i] = k < count ? A[min(row0 + i, M - 1) * K + k0 + k] : 0;
        }
        #pragma unroll
        for (int k = 0; k < TILE_K; ++k)
            for (int i = 0; i < THREAD_M; ++i)
                for (int j = 0; j < THREAD_N; ++j)
                    sum[i][j] += a[k][i] * b[k][j];
    };
    auto add_all = [&](int width) {
        int k0 = part() * TILE_K;
        for (; k0 + TILE_K <= K; k0 += PARTS * CLUSTER * TILE_K)
            add(width, k0, TILE_K);
        if (k0 < K)
            add(width, k0, K - k0);
    };
    by_16_bytes ? add_all(4) : add_all(1);
    unsigned has = add_parts(sum);
    #pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
        if (has >> i & 1 && row0 + i < M)
            write<THREAD_N, 32>(&C[(row0 + i) * N + col0], sum[i], by_16_bytes, N - col0, alpha, beta);
}
