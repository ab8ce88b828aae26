// tensor_matmul_1_wmma.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, on the tensor cores
// idea: a warp multiplies pieces of 16 x 16 with one instruction each, and C++ has words for it: fragments
//       the tiles are those of 2_tiled: 128 bytes of every row, padded so that rows lie in different banks
// launch: block (32*TILE_M/WARP_M * TILE_N/WARP_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
// needs: sm_80
// small: TILE_M=32 TILE_N=32 WARP_M=16 WARP_N=16
// types: half, __nv_bfloat16, tf32
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
#include "element.h"
using namespace nvcuda;
constexpr int TILE_K = 128 / T_BYTES, STEP = 32 / T_BYTES, PAD = CHUNK;  // STEP: k of one instruction
constexpr int WARPS = TILE_N / WARP_N, THREADS = 32 * (TILE_M / WARP_M) * WARPS;  // WARPS: side by side
static_assert(T_BYTES > 1, "wmma has no FP8: choose half, __nv_bfloat16 or tf32 for DTYPE");
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "choose WARP_M x WARP_N to divide the tile");
static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "choose multiples of 16 for WARP_M and WARP_N: pieces");
static_assert(TILE_M * 8 % THREADS == 0 && TILE_N * 8 % THREADS == 0, "choose larger tiles: 8 chunks a row");

extern "C" __global__ void __launch_bounds__(THREADS, 2) tensor_matmul(
    const T* A, const T* B, Out* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(32) T A_tile[TILE_M][TILE_K + PAD], B_tile[TILE_N][TILE_K + PAD];
    __shared__ alignas(32) float C_piece[THREADS / 32][16][16];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / WARPS * WARP_M, x = warp % WARPS * WARP_N;  // the warp's part of it
    int line = threadIdx.x / 8, at = threadIdx.x % 8 * CHUNK;  // row and column that the thread copies first

    wmma::fragment<wmma::accumulator, 16, 16, STEP, float> sum[WARP_M / 16][WARP_N / 16];
    for (auto& row : sum)
        for (auto& piece : row)
            wmma::fill_fragment(piece, 0);
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        #pragma unroll
        for (int i = 0; i < TILE_M; i += THREADS / 8)
            *(uint4*)&A_tile[line + i][at] = load16(A, M, K, row0 + line + i, k0 + at);
        #pragma unroll
        for (int i = 0; i < TILE_N; i += THREADS / 8)
            *(uint4*)&B_tile[line + i][at] = load16(B, N, K, col0 + line + i, k0 + at);
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll
        for (int k = 0; k < TILE_K; k += STEP) {
            wmma::fragment<wmma::matrix_a, 16, 16, STEP, DTYPE, wmma::row_major> a[WARP_M / 16];
            wmma::fragment<wmma::matrix_b, 16, 16, STEP, DTYPE, wmma::col_major> b[WARP_N / 16];
            #pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i)
                wmma::load_matrix_sync(a[i], &A_tile[y + 16 * i][k], TILE_K + PAD);
            #pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j)
                wmma::load_matrix_sync(b[j], &B_tile[x + 16 * j][k], TILE_K + PAD);
            #pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i)
                #pragma unroll
                for (int j = 0; j < WARP_N / 16; ++j)
                    wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
        }
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }

    // Which thread holds which element of a piece is not said: it goes through shared memory.
    #pragma unroll
    for (int i = 0; i < WARP_M / 16; ++i)
        #pragma unroll
        for (int j = 0; j < WARP_N / 16; ++j) {
            wmma::store_matrix_sync(&C_piece[warp][0][0], sum[i][j], 16, wmma::mem_row_major);
            __syncwarp();
            for (int e = 2 * lane; e < 16 * 16; e += 64) {
                float* pair = &C_piece[warp][e / 16][e % 16];
                int row = row0 + y + 16 * i + e / 16, col = col0 + x + 16 * j + e % 16;
                store_pair(C, M, N, row, col, pair[0], pair[1], alpha, beta);
            }
            __syncwarp();  // all is read before the next piece comes
        }
}
