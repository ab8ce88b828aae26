// hgemm_wmma_shared: tensor-core fragments from padded shared tiles, two warps per block, accumulators scaled in place
// launch: hgemm; grid 1 2; block 32 2
// args: out C float32[32,32] uniform; in A float16[32,48] uniform; in B float16[48,32] uniform; N int32 32; K int32 48; alpha float32 0.5; beta float32 -1
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void hgemm(float* C, const half* A, const half* B, int N, int K, float alpha, float beta) {
    __shared__ half As[16][16 + 8], Bs[16][32 + 8];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc, c;
    wmma::fill_fragment(acc, 0.0f);
    int t = threadIdx.y * 32 + threadIdx.x, row0 = blockIdx.y * 16;
    for (int k = 0; k < K; k += 16) {
        for (int i = t; i < 16 * 16; i += 64) As[i / 16][i % 16] = A[(row0 + i / 16) * K + k + i % 16];
        for (int i = t; i < 16 * 32; i += 64) Bs[i / 32][i % 32] = B[(k + i / 32) * N + i % 32];
        __syncthreads();
        wmma::load_matrix_sync(a, &As[0][0], 24);
        wmma::load_matrix_sync(b, &Bs[0][threadIdx.y * 16], 40);
        wmma::mma_sync(acc, a, b, acc);
        __syncthreads();
    }
    float* to = C + row0 * N + threadIdx.y * 16;
    wmma::load_matrix_sync(c, to, N, wmma::mem_row_major);
    for (int i = 0; i < c.num_elements; i++) c.x[i] = alpha * acc.x[i] + beta * c.x[i];
    wmma::store_matrix_sync(to, c, N, wmma::mem_row_major);
}
