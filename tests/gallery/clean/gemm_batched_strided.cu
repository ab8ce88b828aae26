// gemm_batched_strided: many small products in one launch, one per z of the grid, with layouts as template functions
// launch: gemm<Rows, Columns>; grid 1 1 4; block 8 8
// args: out C float64[4,7,8] nan; in A float64[4,7,5] uniform; in B float64[4,8,5] uniform; M int32 7; N int32 8; K int32 5
struct Rows { static __device__ int at(int r, int c, int, int columns) { return r * columns + c; } };
struct Columns { static __device__ int at(int r, int c, int rows, int) { return c * rows + r; } };

template <class LayoutA, class LayoutB>
__global__ void gemm(double* C, const double* A, const double* B, int M, int N, int K) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x, batch = blockIdx.z;
    if (i >= M || j >= N) return;
    A += batch * M * K, B += batch * K * N, C += batch * M * N;
    double sum = 0.0;
    for (int k = 0; k < K; ++k) sum = __fma_rn(A[LayoutA::at(i, k, M, K)], B[LayoutB::at(k, j, K, N)], sum);
    C[i * N + j] = sum;
}
