// init_fragment_never_filled: a product on tensor cores whose fragment of sums is not filled with zeros
// launch: product; grid 1; block 32
// args: out c float32[16,16] 0; a float16[16,16] uniform; b float16[16,16] uniform
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(float* c, const half* a, const half* b) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sums, left, right, sums);  // BUG initcheck unset variable
    wmma::store_matrix_sync(c, sums, 16, wmma::mem_row_major);
}
