// matmul_double: naive product of float64 matrices
// launch: matmul; grid 3 3; block 8 8
// args: out C float64[20,24] nan; in A float64[20,30] normal; in B float64[30,24] normal; M int32 20; N int32 24; K int32 30
extern "C" __global__ void matmul(double* C, const double* A, const double* B, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    double sum = 0;
    for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
