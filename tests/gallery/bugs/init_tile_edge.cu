// init_tile_edge: threads outside the matrix leave their place of the tile as it was
// launch: matmul; grid 2 2; block 16 16
// args: out C float32[20,20] nan; in A float32[20,20] uniform; in B float32[20,20] uniform; n int32 20
#define TILE 16
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        if (row < n && k0 + tx < n) As[ty][tx] = A[row * n + k0 + tx];
        if (col < n && k0 + ty < n) Bs[ty][tx] = B[(k0 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += As[ty][k] * Bs[k][tx];  // BUG initcheck uninitialised read
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}
