// row_sum_block: sums of rows, one block per row
// kind: rows
// set: held out
// launch: row_sum_block; grid 5; block 128
// args: out sums float32[5] nan; in x float32[5,300] uniform; rows int32 5; cols int32 300
// launch: row_sum_block; grid 4096; block 128
// args: out sums float32[4096] nan; in x float32[4096,1024] uniform; rows int32 4096; cols int32 1024
// launch: row_sum_block; grid 8192; block 256
// args: out sums float32[8192] nan; in x float32[8192,8192] uniform; rows int32 8192; cols int32 8192
// launch: row_sum_block; grid 65536; block 128
// args: out sums float32[65536] nan; in x float32[65536,256] uniform; rows int32 65536; cols int32 256
// launch: row_sum_block; grid 100; block 1024
// args: out sums float32[100] nan; in x float32[100,65536] uniform; rows int32 100; cols int32 65536
// expect: sums = summed(x, 1)
extern "C" __global__ void row_sum_block(float* sums, const float* x, int rows, int cols) {
    __shared__ float parts[32];
    int row = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += x[row * cols + c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (warp) return;
    sum = lane < blockDim.x / 32 ? parts[lane] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[row] = sum;
}
