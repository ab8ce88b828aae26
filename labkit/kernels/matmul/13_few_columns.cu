// matmul_13_few_columns.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: 12_few_rows turned round, for few columns: the lanes of a warp read along K, as the rows of A lie.
//       Each has a part of every sum, and hands half of what it has to another, five times
// launch: block (32, 8), grid (ceil(ceil(M/THREAD_M)*ceil(N/THREAD_N)*PARTS/8)*CLUSTER); any M, N, K
#ifndef THREAD_M
#define THREAD_M 4  // rows of a warp
#endif
#ifndef THREAD_N
#define THREAD_N 4  // and its columns: powers of 2, up to 8
#endif
#ifndef TILE_K
#define TILE_K 128  // terms that a warp reads at a time: a multiple of 32
#endif
#include "gpu_parts.h"
#include "gpu_write.h"
constexpr int STEPS = TILE_K / 32;  // terms that a lane reads at a time
constexpr int SUMS = THREAD_M * THREAD_N;  // of a warp
static_assert(32 % SUMS == 0, "choose powers of 2, with a product of at most 32");

extern "C" __global__ void CLUSTERED __launch_bounds__(32 * WARPS, PER_SM) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    int lane = threadIdx.x, across = (N + THREAD_N - 1) / THREAD_N;
    int row0 = team() / across * THREAD_M, col0 = team() % across * THREAD_N;
    // Where a lane's elements of a row of B can be read at once: THREAD_N of them, aligned to as many.
    bool together = ((size_t)B | 4 * N) % (4 * min(THREAD_N, 4)) == 0;
    float sum[SUMS] = {};
    // Beyond the edges a lane repeats the last row or column, which it does not write, or adds 0.
    auto add = [&](int width, int k0, bool is_whole) {
        float a[STEPS][THREAD_M];
        alignas(16) float b[STEPS][THREAD_N];
        #pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            int k = k0 + 32 * s;
            bool inside = is_whole || k < K;
            #pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
                a[s][i] = inside ? A[min(row0 + i, M - 1) * K + k] : 0;
            #pragma unroll
            for (int j = 0; j < THREAD_N; j += width) {
                const float* from = &B[k * N + min(col0 + j, N - width)];
                if (!inside)
                    for (int e = 0; e < width; ++e)
                        b[s][j + e] = 0;
                else if (width == 4)
                    *(float4*)&b[s][j] = *(float4*)from;
                else if (width == 2)
                    *(float2*)&b[s][j] = *(float2*)from;
                else
                    b[s][j] = *from;
            }
        }
        #pragma unroll
        for (int s = 0; s < STEPS; ++s)
            for (int i = 0; i < THREAD_M; ++i)
                for (int j = 0; j < THREAD_N; ++j)
                    sum[i * THREAD_N + j] += a[s][i] * b[s][j];
    };
    auto add_all = [&](int width) {
        int k0 = part() * TILE_K;
        for (; k0 + TILE_K <= K; k0 += PARTS * CLUSTER * TILE_K)
            add(width, k0 + lane, true);
        if (k0 < K)
            add(width, k0 + lane, false);
    };
    together ? add_all(min(THREAD_N, 4)) : add_all(1);
    #pragma unroll
    for (int other = 16, count = SUMS; other > 0; other /= 2, count = (count + 1) / 2)
        if (count == 1)
            sum[0] += __shfl_xor_sync(~0u, sum[0], other);
        else
            #pragma unroll
            for (int s = 0; s < count / 2; ++s) {
                float low = sum[s], high = sum[s + count / 2];
                bool upper = lane & other;  // keeps the upper half, and gets the other lane's of it
                sum[s] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, other);
            }
    float kept[1][1] = {sum[0]};  // of the sum that 32 / SUMS lanes have
    int which = lane / (32 / SUMS), row = row0 + which / THREAD_N, col = col0 + which % THREAD_N;
    if (add_parts(kept) && row < M && col < N && lane % (32 / SUMS) == 0)
        write<1, 1>(&C[row * N + col], kept[0], false, 1, alpha, beta);
}
