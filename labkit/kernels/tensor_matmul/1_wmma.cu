// tensor_matmul_1_wmma.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, sums in float
// idea: a warp multiplies 16 x 16 pieces of A and B with one instruction, on the tensor cores
// launch: block (32), grid (ceil(N/16), ceil(M/16)); any M, N, K
// types: half, __nv_bfloat16, tf32
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
using wmma::precision::tf32;
#ifndef DTYPE
#define DTYPE half
#endif
template <typename Type> struct Operand { using type = Type; static constexpr int K = 16; };
template <> struct Operand<tf32> { using type = float; static constexpr int K = 8; };
using T = Operand<DTYPE>::type;
using Out = T;
constexpr int STEP = Operand<DTYPE>::K;

extern "C" __global__ void __launch_bounds__(32) tensor_matmul(
    const T* A, const T* B, Out* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(32) T A_tile[16][STEP + 8], B_tile[16][STEP + 8];
    __shared__ alignas(32) float C_tile[16][16];
    int row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;

    wmma::fragment<wmma::accumulator, 16, 16, STEP, float> sum;
    wmma::fill_fragment(sum, 0);
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int i = threadIdx.x; i < 16 * STEP; i += 32) {
            int r = i / STEP, k = k0 + i % STEP;
            A_tile[r][i % STEP] = row0 + r < M && k < K ? A[(row0 + r) * K + k] : T(0.f);
            B_tile[r][i % STEP] = col0 + r < N && k < K ? B[(col0 + r) * K + k] : T(0.f);
        }
        __syncwarp();  // the tiles are complete
        wmma::fragment<wmma::matrix_a, 16, 16, STEP, DTYPE, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, STEP, DTYPE, wmma::col_major> b;
        wmma::load_matrix_sync(a, &A_tile[0][0], STEP + 8);
        wmma::load_matrix_sync(b, &B_tile[0][0], STEP + 8);
        wmma::mma_sync(sum, a, b, sum);
        __syncwarp();  // the tiles have been read
    }
    wmma::store_matrix_sync(&C_tile[0][0], sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 16 * 16; e += 32) {
        int row = row0 + e / 16, col = col0 + e % 16;
        if (row >= M || col >= N)
            continue;
        float result = alpha * C_tile[e / 16][e % 16];
        if (beta != 0)
            result += beta * float(C[row * N + col]);
        C[row * N + col] = Out(result);
    }
}
