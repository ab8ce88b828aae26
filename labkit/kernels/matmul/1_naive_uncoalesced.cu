// matmul_1_naive_uncoalesced.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C, from global memory
// idea: 1_naive with threadIdx.x and threadIdx.y exchanged: the same sums, by other threads
//       neighbours in threadIdx.x are in neighbouring rows of A and C: each needs a sector of its own
// launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K; the block must be square
#ifndef DTYPE
#define DTYPE float
#endif
using T = DTYPE;

extern "C" __global__ void matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
{
    int col = blockIdx.x * blockDim.x + threadIdx.y;
    int row = blockIdx.y * blockDim.y + threadIdx.x;
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
