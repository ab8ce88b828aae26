// matmul_uncoalesced: x along the rows, so that a warp reads and writes columns
// launch: matmul; grid 2 2; block 32 32
// args: out C float32[48,40] nan; in A float32[48,33] uniform; in B float32[33,40] uniform; M int32 48; N int32 40; K int32 33
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int M, int N, int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
