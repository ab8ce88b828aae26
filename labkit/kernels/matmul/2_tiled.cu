// matmul_2_tiled.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C, through shared memory
// idea: a block computes one tile of C, bringing tiles of A and B to shared memory, one pair at a time
//       an element is read from global memory once a block, not once a thread: TILE times less traffic
// launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 16
#endif
static_assert(TILE >= 1 && TILE * TILE <= 1024, "a block of TILE x TILE threads: choose TILE from 1 to 32");
using T = DTYPE;

extern "C" __global__ void matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
{
    __shared__ T A_tile[TILE][TILE];
    __shared__ T B_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;

    T sum = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Each thread brings one element of each tile; past the edge a 0, which adds nothing to the sum.
        A_tile[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : T(0);
        B_tile[y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : T(0);
        __syncthreads();  // the tiles are complete before anyone reads them

        for (int k = 0; k < TILE; ++k)
            sum += A_tile[y][k] * B_tile[k][x];
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }

    if (row >= M || col >= N)
        return;  // not earlier: these threads bring elements too, and every thread must reach the barriers

    // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
    T result = alpha * sum;
    if (beta != 0)
        result += beta * C[row * N + col];
    C[row * N + col] = result;
}
