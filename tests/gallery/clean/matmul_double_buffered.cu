// matmul_double_buffered: the next tile is loaded while this one is used: one barrier a step
// launch: matmul; grid 2 2; block 16 16
// args: out C float32[32,32] nan; in A float32[32,48] uniform; in B float32[48,32] uniform; N int32 32; K int32 48
#define TILE 16
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int N, int K) {
    __shared__ float As[2][TILE][TILE], Bs[2][TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    As[0][ty][tx] = A[row * K + tx];
    Bs[0][ty][tx] = B[ty * N + col];
    __syncthreads();
    float sum = 0.0f;
    for (int step = 0; step < K / TILE; step++) {
        int now = step % 2, k0 = (step + 1) * TILE;
        if (k0 < K) {
            As[1 - now][ty][tx] = A[row * K + k0 + tx];
            Bs[1 - now][ty][tx] = B[(k0 + ty) * N + col];
        }
        for (int k = 0; k < TILE; k++) sum += As[now][ty][k] * Bs[now][k][tx];
        __syncthreads();
    }
    C[row * N + col] = sum;
}
