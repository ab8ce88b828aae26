// matmul_10_any_tile.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: 9_tuned for tiles of all sizes, as small matrices need, and for any shape without a slow remainder:
//       copies take 4 bytes where rows do not begin at 16, and bring zeros from beyond the edges
// launch: block (TILE_M/THREAD_M * TILE_N/THREAD_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
#include <cuda_pipeline.h>
#include "gpu_tiles.h"
#include "gpu_write.h"

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / WARPS * WARP_M + lane / COLS * 4;  // the thread's rows: y … y+3, 4 ROWS further on, …
    int x = warp % WARPS * WARP_N + lane % COLS * 4;  // and columns
    int a_row = threadIdx.x / SECTOR, a_k = threadIdx.x % SECTOR;  // the first that the thread copies
    bool by_16_bytes = ((size_t)B | (size_t)C | 4 * N) % 16 == 0;  // where rows of B and C begin
    int width = by_16_bytes ? 4 : 1, b_k = width * threadIdx.x / TILE_N, b_col = width * threadIdx.x % TILE_N;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    auto start_copies = [&](int stage, int k0) {
        const float* from_a = A + ((row0 + a_row) * K + k0 + a_k);
        const float* from_b = B + ((k0 + b_k) * N + col0 + b_col);
        #pragma unroll
        for (int i = 0; i < TILE_M * TILE_K; i += THREADS) {
            int row = i / SECTOR % TILE_M, k = i / SECTOR / TILE_M * SECTOR;
            copy(&A_tile[stage][a_k + k][a_row + row], from_a + row * K + k, 1,
                 row0 + a_row + row < M && k0 + a_k + k < K);
        }
        auto copy_b = [&](int width) {
            // Where columns come one by one, 4 neighbours in B_tile are COLS columns of B from each other:
            // so the threads that write a row of C write neighbours.
            int slot = width == 4 ? b_col : b_col / 32 * 32 + b_col % COLS * 4 + b_col % 32 / COLS;
            #pragma unroll
            for (int i = 0; i < TILE_K * TILE_N; i += width * THREADS) {
                int k = i / TILE_N, col = i % TILE_N;
                copy(&B_tile[stage][b_k + k][slot + col], from_b + k * N + col, width,
                     k0 + b_k + k < K && col0 + b_col + col < N);
            }
        };
        by_16_bytes ? copy_b(4) : copy_b(1);
        __pipeline_commit();
    };
    alignas(16) float a[2][THREAD_M], b[2][THREAD_N];  // for this k and the next
    auto read = [&](int which, int stage, int k) {
        for (int i = 0; i < THREAD_M; i += 4)
            *(float4*)&a[which][i] = *(float4*)&A_tile[stage][k][y + i * ROWS];
        for (int j = 0; j < THREAD_N; j += 4)
            *(float4*)&b[which][j] = *(float4*)&B_tile[stage][k][x + j * COLS];
    };
    float sum[SUMS] = {};
    for (int stage = 0; stage < STAGES - 1; ++stage)
        start_copies(stage, stage * TILE_K);
    __pipeline_wait_prior(STAGES - 2);  // the oldest tiles are there, for the thread that copied them
    __syncthreads();  // and for all
    read(0, 0, 0);
    for (int k0 = 0, stage = 0; k0 < K; k0 += TILE_K) {
        int next = stage + 1 < STAGES ? stage + 1 : 0;
        int last = stage > 0 ? stage - 1 : STAGES - 1;  // its tiles have been read by all
        start_copies(last, k0 + (STAGES - 1) * TILE_K);
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
                    sum[i * THREAD_N + j] += a[k % 2][i] * b[k % 2][j];
                }
        }
        stage = next;
    }
    int first = by_16_bytes ? x : x - lane % COLS * 3;  // of the thread's columns
    #pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        int row = row0 + y + i / THREAD_N / 4 * 4 * ROWS + i / THREAD_N % 4;
        int col = col0 + first + i % THREAD_N * COLS;
        if (row < M)
            write<4, COLS>(&C[row * N + col], &sum[i], by_16_bytes, N - col, alpha, beta);
    }
}
