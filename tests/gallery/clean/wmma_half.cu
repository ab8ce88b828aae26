// wmma_half: C (16,16) = A (16,32) B (32,16) of halves on tensor cores, summed in float
// launch: product; grid 1; block 32
// args: out C float32[16,16] nan; in A float16[16,32] uniform; in B float16[32,16] uniform
// expect: C = product(A, B, extra=32)
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(float* C, const half* A, const half* B) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < 32; k += 16) {
        wmma::load_matrix_sync(a, A + k, 32);
        wmma::load_matrix_sync(b, B + k * 16, 16);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}
