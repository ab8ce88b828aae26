// matmul_half: tiled product of half matrices, summed in float
// launch: matmul; grid 2 2; block 16 16
// args: out C float16[32,32] nan; in A float16[32,32] uniform; in B float16[32,32] uniform; n int32 32
#include <cuda_fp16.h>
#define TILE 16
extern "C" __global__ void matmul(half* C, const half* A, const half* B, int n) {
    __shared__ half As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        As[ty][tx] = A[row * n + k0 + tx];
        Bs[ty][tx] = B[(k0 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += __half2float(As[ty][k]) * __half2float(Bs[k][tx]);
        __syncthreads();
    }
    C[row * n + col] = __float2half(sum);
}
