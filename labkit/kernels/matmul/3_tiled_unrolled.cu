// matmul_3_tiled_unrolled.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C, through shared memory
// idea: 2_tiled with the inner loop written out UNROLL steps at a time: fewer jumps, counters and index sums
//       the compiler does so by itself where it knows the number of steps: UNROLL=1 shows what that is worth
// launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef UNROLL
#define UNROLL TILE
#endif
static_assert(TILE >= 1 && TILE * TILE <= 1024, "a block of TILE x TILE threads: choose TILE from 1 to 32");
static_assert(UNROLL >= 1, "the loop takes UNROLL steps at a time: choose 1, for none unrolled, to TILE");
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

        #pragma unroll UNROLL
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
