// race_tiled_second_sync: the next tiles come while other warps still use these
// launch: matmul; grid 2 2; block 16 16
// args: out C float32[32,32] nan; in A float32[32,32] uniform; in B float32[32,32] uniform; n int32 32
#define TILE 16
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        As[ty][tx] = A[row * n + k0 + tx];
        Bs[ty][tx] = B[(k0 + ty) * n + col];  // OTHER
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += As[ty][k] * Bs[k][tx];  // BUG racecheck race
    }
    C[row * n + col] = sum;
}
