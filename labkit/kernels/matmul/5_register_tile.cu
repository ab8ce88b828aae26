// matmul_5_register_tile.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: a thread computes THREAD_M x THREAD_N elements of C: 8 + 8 reads of shared memory for 64 products
//       its rows and columns lie apart, so that neighbouring threads read neighbouring elements: no conflicts
// launch: block (TILE_M * TILE_N / THREAD_M / THREAD_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef TILE_K
#define TILE_K 8
#endif
#ifndef THREAD_M
#define THREAD_M 8
#endif
#ifndef THREAD_N
#define THREAD_N 8
#endif
constexpr int ROWS = TILE_M / THREAD_M, COLS = TILE_N / THREAD_N, THREADS = ROWS * COLS;
static_assert(TILE_M % THREAD_M == 0, "a thread computes THREAD_M rows: choose one that divides TILE_M");
static_assert(TILE_N % THREAD_N == 0, "a thread computes THREAD_N columns: choose one that divides TILE_N");
static_assert(THREADS <= 1024, "a block of TILE_M / THREAD_M x TILE_N / THREAD_N threads: at most 1024");
using T = DTYPE;

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
{
    __shared__ T A_tile[TILE_M][TILE_K];
    __shared__ T B_tile[TILE_K][TILE_N];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int y = threadIdx.x / COLS, x = threadIdx.x % COLS;  // the thread's rows: y, y + ROWS, …; columns alike

    T sum[THREAD_M][THREAD_N] = {};
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        // The tiles have more elements than the block has threads: each thread brings several.
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS) {
            int row = row0 + i / TILE_K, k = k0 + i % TILE_K;
            A_tile[i / TILE_K][i % TILE_K] = row < M && k < K ? A[row * K + k] : T(0);
        }
        for (int i = threadIdx.x; i < TILE_K * TILE_N; i += THREADS) {
            int k = k0 + i / TILE_N, col = col0 + i % TILE_N;
            B_tile[i / TILE_N][i % TILE_N] = k < K && col < N ? B[k * N + col] : T(0);
        }
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            T a[THREAD_M], b[THREAD_N];
            #pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
                a[i] = A_tile[y + i * ROWS][k];
            #pragma unroll
            for (int j = 0; j < THREAD_N; ++j)
                b[j] = B_tile[k][x + j * COLS];
            #pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
                #pragma unroll
                for (int j = 0; j < THREAD_N; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }

    #pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
        #pragma unroll
        for (int j = 0; j < THREAD_N; ++j) {
            int row = row0 + y + i * ROWS, col = col0 + x + j * COLS;
            if (row >= M || col >= N)
                continue;
            // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
            T result = alpha * sum[i][j];
            if (beta != 0)
                result += beta * C[row * N + col];
            C[row * N + col] = result;
        }
}
