// matmul_1_naive.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C, from global memory
// idea: one thread an element of C; it walks a row of A and a column of B (all row-major)
//       neighbours in threadIdx.x are neighbours in a row of B and C: a warp reads and writes whole sectors
// launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K
#ifndef DTYPE
#define DTYPE float
#endif
using T = DTYPE;

extern "C" __global__ void matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;  // the last blocks stick out over the edge of C

    T sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];

    // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
    T result = alpha * sum;
    if (beta != 0)
        result += beta * C[row * N + col];
    C[row * N + col] = result;
}
