// imbalance_rows: a triangle's rows are summed, one warp per row: rows differ in length
// kind: imbalance
// set: held out
// launch: imbalance_rows; grid 8; block 256
// args: out sums float32[60] nan; in x float32[60,60] uniform; n int32 60
// launch: imbalance_rows; grid 256; block 256
// args: out sums float32[2048] nan; in x float32[2048,2048] uniform; n int32 2048
// launch: imbalance_rows; grid 1024; block 256
// args: out sums float32[8192] nan; in x float32[8192,8192] uniform; n int32 8192
// launch: imbalance_rows; grid 2500; block 256
// args: out sums float32[20000] nan; in x float32[20000,20000] uniform; n int32 20000
// expect: sums = summed(np.tril(x), 1)
extern "C" __global__ void imbalance_rows(float* sums, const float* x, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    float sum = 0;
    for (int c = lane; c <= row; c += 32) sum += x[row * n + c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[row] = sum;
}
