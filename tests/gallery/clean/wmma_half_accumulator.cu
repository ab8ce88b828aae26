// wmma_half_accumulator: small integers as halves, summed in halves, B by columns: exact
// launch: product; grid 1; block 32
// args: out C float16[16,16] nan; in A float16[16,16] integers(-4,5); in B float16[16,16] integers(-4,5)
// expect: C = wide(A) @ wide(B).T
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(half* C, const half* A, const half* B) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> c;
    wmma::fill_fragment(c, __float2half(0.0f));
    wmma::load_matrix_sync(a, A, 16);
    wmma::load_matrix_sync(b, B, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}
