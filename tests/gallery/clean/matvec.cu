// matvec: y = A x, a warp a row, summed with shuffles
// launch: matvec; grid 5; block 128
// args: out y float32[19] nan; in A float32[19,70] uniform; in x float32[70] uniform; M int32 19; K int32 70
// expect: y = product(A, x)
extern "C" __global__ void matvec(float* y, const float* A, const float* x, int M, int K) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= M) return;
    float sum = 0.0f;
    for (int k = lane; k < K; k += 32) sum += A[row * K + k] * x[k];
    for (int mask = 16; mask; mask >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (lane == 0) y[row] = sum;
}
