// refused_tile_33: a block of 33 x 33 has 1089 threads
// launch: matmul; grid 1 1; block 33 33
// args: out C float32[33,33] nan; in A float32[33,33] uniform; in B float32[33,33] uniform; n int32 33
// refused: 1089 threads
#define TILE 33
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    As[ty][tx] = A[ty * n + tx];
    Bs[ty][tx] = B[ty * n + tx];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < TILE; k++) sum += As[ty][k] * Bs[k][tx];
    C[ty * n + tx] = sum;
}
