// matmul_tensor_cores.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C, on the tensor cores
// idea: a warp multiplies 16 x 16 pieces of the tiles with one instruction each, on operands of few bits
//       A and B are rounded to PRECISION, 11 significant bits of 24; the products are summed in float
// launch: block (32*TILE_M/WARP_M * TILE_N/WARP_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
#include <mma.h>
using namespace nvcuda;
using wmma::precision::tf32;
#ifndef PRECISION
#define PRECISION tf32
#endif
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef TILE_K
#define TILE_K 32
#endif
#ifndef WARP_M
#define WARP_M 64
#endif
#ifndef WARP_N
#define WARP_N 32
#endif
template <typename Type> struct Operand {
    static_assert(sizeof(Type*) == 0, "choose tf32 or half for PRECISION");
};
template <> struct Operand<tf32> {  // the exponent of a float, in 4 bytes
    using type = float;
    static constexpr int K = 8;  // of one instruction
    static __device__ float rounded(float value) { return wmma::__float_to_tf32(value); }
};
template <> struct Operand<half> {  // up to 65504, in 2 bytes
    using type = half;
    static constexpr int K = 16;
    static __device__ half rounded(float value) { return __float2half(value); }
};
using Rounded = Operand<PRECISION>;
using T = Rounded::type;
constexpr int WARPS = TILE_N / WARP_N, THREADS = 32 * (TILE_M / WARP_M) * WARPS, STEP = Rounded::K, PAD = 8;
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "choose WARP_M x WARP_N to divide the tile");
static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0 && TILE_K % 16 == 0, "choose multiples of 16: pieces");

// Elements col … col+3 of a row, rounded, to shared memory; 0 past the edge.
__device__ void bring(T* to, const float* matrix, int rows, int cols, int row, int col)
{
    alignas(16) float four[4] = {};
    const float* from = &matrix[row * cols + col];
    if (cols % 4 == 0 && row < rows && col < cols)  // every row begins at a multiple of 16 bytes
        *(float4*)four = *(const float4*)from;
    for (int i = 0; i < 4; ++i) {
        if (cols % 4 != 0 && row < rows && col + i < cols)
            four[i] = from[i];
        to[i] = Rounded::rounded(four[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(32) T A_tile[TILE_M][TILE_K + PAD];
    __shared__ alignas(32) T B_tile[TILE_K][TILE_N + PAD];
    __shared__ alignas(32) float C_piece[THREADS / 32][16][16];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / WARPS * WARP_M, x = warp % WARPS * WARP_N;  // the warp's part of it

    wmma::fragment<wmma::accumulator, 16, 16, STEP, float> sum[WARP_M / 16][WARP_N / 16];
    for (auto& row : sum)
        for (auto& piece : row)
            wmma::fill_fragment(piece, 0);
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        #pragma unroll
        for (int i = 4 * threadIdx.x; i < TILE_M * TILE_K; i += 4 * THREADS)
            bring(&A_tile[i / TILE_K][i % TILE_K], A, M, K, row0 + i / TILE_K, k0 + i % TILE_K);
        #pragma unroll
        for (int i = 4 * threadIdx.x; i < TILE_K * TILE_N; i += 4 * THREADS)
            bring(&B_tile[i / TILE_N][i % TILE_N], B, K, N, k0 + i / TILE_N, col0 + i % TILE_N);
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll
        for (int k = 0; k < TILE_K; k += STEP) {
            wmma::fragment<wmma::matrix_a, 16, 16, STEP, PRECISION, wmma::row_major> a[WARP_M / 16];
            wmma::fragment<wmma::matrix_b, 16, 16, STEP, PRECISION, wmma::row_major> b[WARP_N / 16];
            #pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i)
                wmma::load_matrix_sync(a[i], &A_tile[y + 16 * i][k], TILE_K + PAD);
            #pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j)
                wmma::load_matrix_sync(b[j], &B_tile[k][x + 16 * j], TILE_N + PAD);
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
            for (int e = lane; e < 16 * 16; e += 32) {
                int row = row0 + y + 16 * i + e / 16, col = col0 + x + 16 * j + e % 16;
                if (row >= M || col >= N)
                    continue;
                // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
                float result = alpha * C_piece[warp][e / 16][e % 16];
                if (beta != 0)
                    result += beta * C[row * N + col];
                C[row * N + col] = result;
            }
            __syncwarp();  // all is read before the next piece comes
        }
}
