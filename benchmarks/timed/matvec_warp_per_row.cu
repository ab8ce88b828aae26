// matvec_warp_per_row: y = A x, one warp per row
// kind: matvec
// set: held out
// launch: matvec_warp_per_row; grid 4; block 128
// args: out y float32[15] nan; in A float32[15,100] uniform; in x float32[100] uniform; rows int32 15; cols int32 100
// launch: matvec_warp_per_row; grid 256; block 256
// args: out y float32[2048] nan; in A float32[2048,2048] uniform; in x float32[2048] uniform; rows int32 2048; cols int32 2048
// launch: matvec_warp_per_row; grid 2048; block 256
// args: out y float32[16384] nan; in A float32[16384,16384] uniform; in x float32[16384] uniform; rows int32 16384; cols int32 16384
// launch: matvec_warp_per_row; grid 16384; block 256
// args: out y float32[131072] nan; in A float32[131072,256] uniform; in x float32[256] uniform; rows int32 131072; cols int32 256
// expect: y = product(A, x)
extern "C" __global__ void matvec_warp_per_row(float* y, const float* A, const float* x, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int c = lane; c < cols; c += 32) sum += A[row * cols + c] * x[c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) y[row] = sum;
}
