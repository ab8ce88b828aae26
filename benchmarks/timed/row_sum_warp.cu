// row_sum_warp: sums of rows, one warp per row
// kind: rows
// set: build
// launch: row_sum_warp; grid 3; block 128
// args: out sums float32[10] nan; in x float32[10,100] uniform; rows int32 10; cols int32 100
// launch: row_sum_warp; grid 512; block 256
// args: out sums float32[4096] nan; in x float32[4096,512] uniform; rows int32 4096; cols int32 512
// launch: row_sum_warp; grid 8192; block 256
// args: out sums float32[65536] nan; in x float32[65536,1024] uniform; rows int32 65536; cols int32 1024
// launch: row_sum_warp; grid 32; block 256
// args: out sums float32[256] nan; in x float32[256,16384] uniform; rows int32 256; cols int32 16384
// launch: row_sum_warp; grid 65536; block 256
// args: out sums float32[524288] nan; in x float32[524288,128] uniform; rows int32 524288; cols int32 128
// expect: sums = summed(x, 1)
extern "C" __global__ void row_sum_warp(float* sums, const float* x, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int c = lane; c < cols; c += 32) sum += x[row * cols + c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[row] = sum;
}
