// matmul_register_2d: each thread makes a square of 4 x 4 results
// launch: matmul; grid 2 2; block 8 8
// args: out C float32[64,64] nan; in A float32[64,32] uniform; in B float32[32,64] uniform; N int32 64; K int32 32
#define TILE 32
#define BK 8
#define T 4
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int N, int K) {
    __shared__ float As[TILE][BK], Bs[BK][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 8 + tx;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    float sum[T][T] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = t; i < TILE * BK; i += 64) {
            As[i / BK][i % BK] = A[(row0 + i / BK) * K + k0 + i % BK];
            Bs[i / TILE][i % TILE] = B[(k0 + i / TILE) * N + col0 + i % TILE];
        }
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < BK; k++) {
            float a[T], b[T];
            for (int m = 0; m < T; m++) a[m] = As[ty * T + m][k];
            for (int n = 0; n < T; n++) b[n] = Bs[k][tx * T + n];
            for (int m = 0; m < T; m++)
                for (int n = 0; n < T; n++) sum[m][n] += a[m] * b[n];
        }
        __syncthreads();
    }
    for (int m = 0; m < T; m++)
        for (int n = 0; n < T; n++) C[(row0 + ty * T + m) * N + col0 + tx * T + n] = sum[m][n];
}
