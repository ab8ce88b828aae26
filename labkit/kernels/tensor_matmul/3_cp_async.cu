// tensor_matmul_3_cp_async.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, on the tensor cores
// idea: 2_mma with STAGES tiles: while one is multiplied, cp.async brings the next, past the registers
// launch: block (32*TILE_M/WARP_M * TILE_N/WARP_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
// shared: STAGES * (TILE_M + TILE_N) * 128
// needs: sm_80
// small: TILE_M=32 TILE_N=32 WARP_M=16 WARP_N=16 STAGES=2
#ifndef DTYPE
#define DTYPE half
#endif
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef WARP_M
#define WARP_M 64
#endif
#ifndef WARP_N
#define WARP_N 32
#endif
#ifndef STAGES
#define STAGES 3
#endif
#include "element.h"
#include "ampere.h"
constexpr int TILE_K = 128 / T_BYTES;
constexpr int WARPS = TILE_N / WARP_N, THREADS = 32 * (TILE_M / WARP_M) * WARPS;  // WARPS: side by side
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "choose WARP_M x WARP_N to divide the tile");
static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "choose multiples of 16 for WARP_M and WARP_N: pieces");
static_assert(TILE_M * 8 % THREADS == 0 && TILE_N * 8 % THREADS == 0, "choose larger tiles: 8 chunks a row");
static_assert(STAGES >= 2, "choose at least 2 STAGES: one is multiplied while others come");
struct Stage { T A_tile[TILE_M][TILE_K], B_tile[TILE_N][TILE_K]; };

// Start to copy 16 bytes, with 0 past the edges; at once where rows begin at any address.
__device__ void copy16(T* to, const T* matrix, int rows, int cols, int row, int col)
{
    bool inside = row < rows && col < cols;
    if (cols % CHUNK == 0)
        cp_async(to, inside ? &matrix[(size_t)row * cols + col] : matrix, inside ? 16 : 0);
    else
        *(uint4*)to = load16(matrix, rows, cols, row, col);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) tensor_matmul(
    const T* A, const T* B, Out* C, int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(128) unsigned char memory[];
    Stage* stages = (Stage*)memory;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / WARPS * WARP_M, x = warp % WARPS * WARP_N;  // the warp's part of it
    int line = threadIdx.x / 8, chunk = threadIdx.x % 8;  // row and chunk that the thread copies first
    auto start_copies = [&](int step) {
        auto& [A_tile, B_tile] = stages[step % STAGES];
        int k0 = step * TILE_K;
        #pragma unroll
        for (int i = 0; i < TILE_M; i += THREADS / 8)
            copy16(swizzled(A_tile, line + i, chunk), A, M, K, row0 + line + i, k0 + chunk * CHUNK);
        #pragma unroll
        for (int i = 0; i < TILE_N; i += THREADS / 8)
            copy16(swizzled(B_tile, line + i, chunk), B, N, K, col0 + line + i, k0 + chunk * CHUNK);
        cp_async_commit_group();
    };

    float sum[WARP_M / 16][WARP_N / 8][4] = {};
    for (int step = 0; step < STAGES - 1; ++step)
        start_copies(step);
    for (int step = 0; step * TILE_K < K; ++step) {
        auto& [A_tile, B_tile] = stages[step % STAGES];
        cp_async_wait_group<STAGES - 2>();  // the oldest tiles are there, for the thread that copied them
        __syncthreads();  // and for all; and all have read the tiles that are overwritten now
        start_copies(step + STAGES - 1);

        #pragma unroll
        for (int k = 0; k < 8; k += 2) {
            unsigned a[WARP_M / 16][4], b[WARP_N / 16][4];
            #pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i)  // rows 0-7, rows 8-15; then both of the second chunk
                ldmatrix(a[i], swizzled(A_tile, y + 16 * i + lane % 16, k + lane / 16));
            #pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j)  // both chunks of rows 0-7; then those of rows 8-15
                ldmatrix(b[j], swizzled(B_tile, x + 16 * j + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
            #pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i)
                #pragma unroll
                for (int j = 0; j < WARP_N / 8; ++j)
                    mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    #pragma unroll
    for (int i = 0; i < WARP_M / 8; ++i)  // 8 rows at a time: a thread has 2 columns of each 8 x 8
        #pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j) {
            float* pair = &sum[i / 2][j][i % 2 * 2];
            int row = row0 + y + 8 * i + lane / 4, col = col0 + x + 8 * j + lane % 4 * 2;
            store_pair(C, M, N, row, col, pair[0], pair[1], alpha, beta);
        }
}
