// matmul_9_tuned.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: 8_warp_tile with larger tiles, STAGES of them on the way, no guard in the loop, and what the next k
//       needs read from shared memory while this k is multiplied: the sums never wait, nor at the barrier
// launch: block (32*TILE_M/WARP_M * TILE_N/WARP_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
#include <cuda_pipeline.h>
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 256
#endif
#ifndef TILE_K
#define TILE_K 8
#endif
#ifndef WARP_M
#define WARP_M 32
#endif
#ifndef WARP_N
#define WARP_N 128
#endif
#ifndef THREAD_M
#define THREAD_M 8
#endif
#ifndef THREAD_N
#define THREAD_N 16
#endif
#ifndef STAGES
#define STAGES 3
#endif
constexpr int ROWS = WARP_M / THREAD_M, COLS = WARP_N / THREAD_N;  // of threads in a warp
constexpr int WARPS = TILE_N / WARP_N, THREADS = 32 * (TILE_M / WARP_M) * WARPS;  // WARPS: side by side
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "choose WARP_M x WARP_N to divide the tile");
static_assert(ROWS * COLS == 32 && 32 * THREAD_M * THREAD_N == WARP_M * WARP_N, "THREAD_ is a 32nd of WARP_");
static_assert(THREAD_M % 4 == 0 && THREAD_N % 4 == 0, "choose multiples of 4 for THREAD_M and THREAD_N");
static_assert(THREADS % TILE_K == 0 && TILE_M * TILE_K % THREADS == 0 && TILE_K * TILE_N % (4 * THREADS) == 0
              && 4 * THREADS % TILE_N == 0, "every thread copies as much: choose powers of 2 that fit");
static_assert(TILE_K % 2 == 0 && STAGES >= 2, "choose an even TILE_K and at least 2 STAGES: two take turns");

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(16) float A_tile[STAGES][TILE_K][TILE_M + 4];  // turned; + 4: fewer bank conflicts
    __shared__ alignas(16) float B_tile[STAGES][TILE_K][TILE_N];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / WARPS * WARP_M + lane / COLS * 4;  // the thread's rows: y … y+3, 4 ROWS further on, …
    int x = warp % WARPS * WARP_N + lane % COLS * 4;  // and columns
    int whole = N % 4 == 0 ? K / TILE_K * TILE_K : 0;  // k in whole tiles, if B can be copied by 16 bytes
    auto start_copies = [&](int stage, int k0) {
        k0 = min(k0, whole - TILE_K);  // behind the last tile: it again, for nobody to read
        #pragma unroll
        for (int i = 0; i < TILE_M * TILE_K; i += THREADS) {
            int k = threadIdx.x % TILE_K, row = (threadIdx.x + i) / TILE_K;
            __pipeline_memcpy_async(&A_tile[stage][k][row], &A[min(row0 + row, M - 1) * K + k0 + k], 4);
        }
        #pragma unroll
        for (int i = 0; i < TILE_K * TILE_N; i += 4 * THREADS) {
            int k = (4 * threadIdx.x + i) / TILE_N, col = 4 * threadIdx.x % TILE_N;
            __pipeline_memcpy_async(&B_tile[stage][k][col], &B[(k0 + k) * N + min(col0 + col, N - 4)], 16);
        }
        __pipeline_commit();
    };
    alignas(16) float a[2][THREAD_M], b[2][THREAD_N];  // for this k and the next
    auto read = [&](int which, int stage, int k) {
        for (int i = 0; i < THREAD_M; i += 4)
            *(float4*)&a[which][i] = *(float4*)&A_tile[stage][k][y + i * ROWS];
        for (int j = 0; j < THREAD_N; j += 4)
            *(float4*)&b[which][j] = *(float4*)&B_tile[stage][k][x + j * COLS];
    };
    float sum[THREAD_M][THREAD_N] = {};
    if (whole) {
        for (int stage = 0; stage < STAGES - 1; ++stage)
            start_copies(stage, stage * TILE_K);
        __pipeline_wait_prior(STAGES - 2);  // the oldest tiles are there, for the thread that copied them
        __syncthreads();  // and for all
        read(0, 0, 0);
    }
    for (int k0 = 0, stage = 0; k0 < whole; k0 += TILE_K) {
        int next = stage + 1 < STAGES ? stage + 1 : 0, last = stage > 0 ? stage - 1 : STAGES - 1;
        start_copies(last, k0 + (STAGES - 1) * TILE_K);  // over the tiles that all have read
        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            if (k == TILE_K - 1) {
                __pipeline_wait_prior(STAGES - 2);
                __syncthreads();
            }
            read((k + 1) % 2, k < TILE_K - 1 ? stage : next, (k + 1) % TILE_K);
            for (int j = 0; j < THREAD_N; ++j)
                for (int n = 0; n < THREAD_M; ++n) {
                    int i = j % 2 ? THREAD_M - 1 - n : n;  // to and fro: the a last read serves again
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
                }
        }
        stage = next;
    }
    auto row_of = [&](int i) { return row0 + y + i / 4 * 4 * ROWS + i % 4; };  // of the thread's i-th row
    auto col_of = [&](int j) { return col0 + x + j / 4 * 4 * COLS + j % 4; };
    #pragma unroll 1
    for (int k = whole; k < K; ++k)  // what is left (all of K where N % 4 != 0), slowly from global memory
        #pragma unroll
        for (int i = 0; i < THREAD_M; ++i)
            for (int j = 0; j < THREAD_N; ++j)
                sum[i][j] += A[min(row_of(i), M - 1) * K + k] * B[k * N + min(col_of(j), N - 1)];
    #pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
        for (int j = 0; j < THREAD_N; j += 4) {
            int row = row_of(i), col = col_of(j);
            if (row >= M || col >= N)
                continue;
            // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
            alignas(16) float result[4], *to = &C[row * N + col];
            for (int e = 0; e < 4; ++e)
                result[e] = alpha * sum[i][j + e] + (beta != 0 && col + e < N ? beta * to[e] : 0);
            if (N % 4 == 0)  // every row of C begins at a multiple of 16 bytes
                *(float4*)to = *(float4*)result;
            else
                for (int e = 0; e < 4 && col + e < N; ++e)
                    to[e] = result[e];
        }
}
