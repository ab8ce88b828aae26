// oob_matmul_guard: the product of ragged matrices without a guard
// launch: matmul; grid 2 2; block 16 16
// args: out C float32[20,20] nan; in A float32[20,20] uniform; in B float32[20,20] uniform; n int32 20
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += A[row * n + k] * B[k * n + col];  // BUG memcheck out of bounds
    if (row < n && col < n) C[row * n + col] = sum;
}
