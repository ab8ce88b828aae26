// matmul_tiled: tiles of both matrices in shared memory, any shape
// launch: matmul<8>; grid 5 4; block 8 8
// args: out C float32[30,40] nan; in A float32[30,21] uniform; in B float32[21,40] uniform; M int32 30; N int32 40; K int32 21
// launch: matmul<16>; grid 3 2; block 16 16
// launch: matmul<32>; grid 2 1; block 32 32
template <int TILE>
__global__ void matmul(float* C, const float* A, const float* B, int M, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty][tx] = k0 + ty < K && col < N ? B[(k0 + ty) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
