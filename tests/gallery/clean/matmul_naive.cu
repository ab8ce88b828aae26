// matmul_naive: C (M,N) = A (M,K) B (K,N), a thread an element, x along the columns
// launch: matmul; grid 3 5; block 16 8
// args: out C float32[37,45] nan; in A float32[37,29] uniform; in B float32[29,45] uniform; M int32 37; N int32 45; K int32 29
// launch: matmul; grid 2 2; block 32 32
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
