// matmul_6_vectorised.cu: C (M,N) = alpha A (M,K) B (K,N) + beta C
// idea: 5_register_tile with four elements (16 bytes) a load and a store: a quarter of the instructions
//       the tile of A is stored turned, so that four rows of one k are neighbours in shared memory too
// launch: block (TILE_M * TILE_N / THREAD_M / THREAD_N), grid (ceil(N/TILE_N), ceil(M/TILE_M)); any M, N, K
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
static_assert(THREAD_M % 4 == 0 && TILE_M % THREAD_M == 0, "THREAD_M: a multiple of 4 that divides TILE_M");
static_assert(THREAD_N % 4 == 0 && TILE_N % THREAD_N == 0, "THREAD_N: a multiple of 4 that divides TILE_N");
static_assert(TILE_K % 4 == 0, "four elements are loaded at a time: choose a multiple of 4 for TILE_K");
static_assert(THREADS <= 1024, "a block of TILE_M / THREAD_M x TILE_N / THREAD_N threads: at most 1024");

// Elements col … col+3 of a row, 0 past the edge. Every row begins at 16 bytes only if cols % 4 == 0.
__device__ float4 load(const float* matrix, int rows, int cols, int row, int col)
{
    const float* from = &matrix[row * cols + col];
    if (cols % 4 == 0)
        return row < rows && col < cols ? *(const float4*)from : float4{};
    alignas(16) float four[4] = {};
    for (int i = 0; i < 4; ++i)
        if (row < rows && col + i < cols)
            four[i] = from[i];
    return *(float4*)four;
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)
{
    __shared__ alignas(16) float A_tile[TILE_K][TILE_M + 4];  // turned; + 4: fewer bank conflicts
    __shared__ alignas(16) float B_tile[TILE_K][TILE_N];
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;  // the block's tile of C
    int y = threadIdx.x / COLS * 4, x = threadIdx.x % COLS * 4;  // the thread's rows: y … y+3, 4 ROWS on, …

    float sum[THREAD_M][THREAD_N] = {};
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = 4 * threadIdx.x; i < TILE_M * TILE_K; i += 4 * THREADS) {
            int row = i / TILE_K, k = i % TILE_K;
            float4 a = load(A, M, K, row0 + row, k0 + k);
            A_tile[k][row] = a.x;
            A_tile[k + 1][row] = a.y;
            A_tile[k + 2][row] = a.z;
            A_tile[k + 3][row] = a.w;
        }
        for (int i = 4 * threadIdx.x; i < TILE_K * TILE_N; i += 4 * THREADS)
            *(float4*)&B_tile[i / TILE_N][i % TILE_N] = load(B, K, N, k0 + i / TILE_N, col0 + i % TILE_N);
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            alignas(16) float a[THREAD_M], b[THREAD_N];
            #pragma unroll
            for (int i = 0; i < THREAD_M; i += 4)
                *(float4*)&a[i] = *(float4*)&A_tile[k][y + i * ROWS];
            #pragma unroll
            for (int j = 0; j < THREAD_N; j += 4)
                *(float4*)&b[j] = *(float4*)&B_tile[k][x + j * COLS];
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
        for (int j = 0; j < THREAD_N; j += 4) {
            int row = row0 + y + i / 4 * 4 * ROWS + i % 4, col = col0 + x + j * COLS;
            if (row >= M || col >= N)
                continue;
            // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
            alignas(16) float result[4], *to = &C[row * N + col];
            for (int e = 0; e < 4; ++e)
                result[e] = alpha * sum[i][j + e] + (beta != 0 && col + e < N ? beta * to[e] : 0);
            if (N % 4 == 0)  // every row of C begins at a multiple of 16 bytes
                *(float4*)to = *(float4*)result;
            else
                for (int e = 0; e < 4 && col + e < N; ++e)
                    to[e] = result[e];
        }
}
