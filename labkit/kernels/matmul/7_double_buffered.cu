// matmul_7_double_buffered.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: 6_vectorised with two pairs of tiles: while one is multiplied, the next is on its way
//       cp.async copies to shared memory by itself, past the registers: no thread waits for what it loads
// launch: block (TILE_M * TILE_N / THREAD_M / THREAD_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
#include <cuda_pipeline.h>
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef TILE_K
#define TILE_K 8
#endif
#ifndef THREAD_M
#define THREAD_M 8
#endif
#ifndef THREAD_N
#define THREAD_N 8
#endif
constexpr int ROWS = TILE_M / THREAD_M, COLS = TILE_N / THREAD_N, THREADS = ROWS * COLS;
static_assert(THREAD_M % 4 == 0 && TILE_M % THREAD_M == 0, "THREAD_M: a multiple of 4 that divides TILE_M");
static_assert(THREAD_N % 4 == 0 && TILE_N % THREAD_N == 0, "THREAD_N: a multiple of 4 that divides TILE_N");
static_assert(TILE_N % 4 == 0, "four elements are copied at a time: choose a multiple of 4 for TILE_N");
static_assert(THREADS <= 1024, "a block of TILE_M / THREAD_M x TILE_N / THREAD_N threads: at most 1024");

// Starts a copy of COUNT elements to shared memory; past the edge it is zeros.
template <int COUNT>
__device__ void start_copy(float* to, const float* from, bool inside)
{
    if (inside)
        __pipeline_memcpy_async(to, from, COUNT * sizeof(float));
    else
        for (int i = 0; i < COUNT; ++i)
            to[i] = 0;
}

// __launch_bounds__: registers for two blocks a multiprocessor, one of which computes while the other waits
extern "C" __global__ void __launch_bounds__(THREADS, 2) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(16) float A_tile[2][TILE_K][TILE_M + 4];  // turned; + 4: fewer bank conflicts
    __shared__ alignas(16) float B_tile[2][TILE_K][TILE_N];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int y = threadIdx.x / COLS * 4, x = threadIdx.x % COLS * 4;  // the thread's rows: y … y+3, 4 ROWS on, …

    auto start_copies = [&](int buffer, int k0) {
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS) {
            int row = i / TILE_K, k = i % TILE_K;
            const float* from = &A[(row0 + row) * K + k0 + k];
            start_copy<1>(&A_tile[buffer][k][row], from, row0 + row < M && k0 + k < K);
        }
        for (int i = 4 * threadIdx.x; i < TILE_K * TILE_N; i += 4 * THREADS) {
            int k = i / TILE_N, col = i % TILE_N;
            float* to = &B_tile[buffer][k][col];
            const float* from = &B[(k0 + k) * N + col0 + col];
            if (N % 4 == 0)  // every row of B begins at a multiple of 16 bytes
                start_copy<4>(to, from, k0 + k < K && col0 + col < N);
            else
                for (int e = 0; e < 4; ++e)
                    start_copy<1>(to + e, from + e, k0 + k < K && col0 + col + e < N);
        }
        __pipeline_commit();
    };

    float sum[THREAD_M][THREAD_N] = {};
    start_copies(0, 0);
    for (int k0 = 0, buffer = 0; k0 < K; k0 += TILE_K, buffer ^= 1) {
        start_copies(buffer ^ 1, k0 + TILE_K);  // the last time zeros, which nobody reads
        __pipeline_wait_prior(1);  // only the newest copies may still be on their way
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            alignas(16) float a[THREAD_M], b[THREAD_N];
            #pragma unroll
            for (int i = 0; i < THREAD_M; i += 4)
                *(float4*)&a[i] = *(float4*)&A_tile[buffer][k][y + i * ROWS];
            #pragma unroll
            for (int j = 0; j < THREAD_N; j += 4)
                *(float4*)&b[j] = *(float4*)&B_tile[buffer][k][x + j * COLS];
            #pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
                #pragma unroll
                for (int j = 0; j < THREAD_N; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }

    #pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
        #pragma unroll
        for (int j = 0; j < THREAD_N; j += 4) {
            int row = row0 + y + i / 4 * 4 * ROWS + i % 4, col = col0 + x + j * COLS;
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
