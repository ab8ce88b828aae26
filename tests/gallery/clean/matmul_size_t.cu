// matmul_size_t: indices of 64 bits
// launch: matmul; grid 2 3; block 16 16
// args: out C float32[33,31] nan; in A float32[33,17] uniform; in B float32[17,31] uniform; M uint64 33; N uint64 31; K uint64 17
extern "C" __global__ void matmul(float* C, const float* A, const float* B, size_t M, size_t N, size_t K) {
    size_t row = (size_t)blockIdx.y * blockDim.y + threadIdx.y, col = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (size_t k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
