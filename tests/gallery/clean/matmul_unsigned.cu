// matmul_unsigned: unsigned indices, A transposed: C (M,N) = A^T, A (K,M), times B (K,N)
// launch: matmul; grid 2 5; block 32 8
// args: out C float32[35,40] nan; in A float32[19,35] uniform; in B float32[19,40] uniform; M uint32 35; N uint32 40; K uint32 19
// expect: C = product(A.T, B)
extern "C" __global__ void matmul(float* C, const float* A, const float* B, unsigned M, unsigned N, unsigned K) {
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (unsigned k = 0; k < K; k++) sum += A[k * M + row] * B[k * N + col];
    C[row * N + col] = sum;
}
