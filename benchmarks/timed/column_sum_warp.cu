// column_sum_warp: sums of columns, one warp per column: each lane reads another row
// kind: columns
// set: held out
// launch: column_sum_warp; grid 5; block 64
// args: out sums float32[10] nan; in x float32[70,10] uniform; rows int32 70; cols int32 10
// launch: column_sum_warp; grid 128; block 256
// args: out sums float32[1024] nan; in x float32[2048,1024] uniform; rows int32 2048; cols int32 1024
// launch: column_sum_warp; grid 512; block 256
// args: out sums float32[4096] nan; in x float32[4096,4096] uniform; rows int32 4096; cols int32 4096
// launch: column_sum_warp; grid 2048; block 256
// args: out sums float32[16384] nan; in x float32[2048,16384] uniform; rows int32 2048; cols int32 16384
// expect: sums = summed(x, 0)
extern "C" __global__ void column_sum_warp(float* sums, const float* x, int rows, int cols) {
    int col = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (col >= cols) return;
    float sum = 0;
    for (int r = lane; r < rows; r += 32) sum += x[r * cols + col];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[col] = sum;
}
