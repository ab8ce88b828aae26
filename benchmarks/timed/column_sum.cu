// column_sum: sums of columns, one thread per column: coalesced
// kind: columns
// set: build
// launch: column_sum; grid 2; block 64
// args: out sums float32[100] nan; in x float32[30,100] uniform; rows int32 30; cols int32 100
// launch: column_sum; grid 64; block 64
// args: out sums float32[4096] nan; in x float32[1024,4096] uniform; rows int32 1024; cols int32 4096
// launch: column_sum; grid 512; block 256
// args: out sums float32[131072] nan; in x float32[512,131072] uniform; rows int32 512; cols int32 131072
// launch: column_sum; grid 2048; block 256
// args: out sums float32[524288] nan; in x float32[128,524288] uniform; rows int32 128; cols int32 524288
// expect: sums = summed(x, 0)
extern "C" __global__ void column_sum(float* sums, const float* x, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float sum = 0;
    for (int r = 0; r < rows; r++) sum += x[r * cols + col];
    sums[col] = sum;
}
