// row_sum_thread: sums of rows, one thread per row: lanes read a row apart
// kind: rows
// set: build
// launch: row_sum_thread; grid 2; block 64
// args: out sums float32[100] nan; in x float32[100,30] uniform; rows int32 100; cols int32 30
// launch: row_sum_thread; grid 64; block 256
// args: out sums float32[16384] nan; in x float32[16384,128] uniform; rows int32 16384; cols int32 128
// launch: row_sum_thread; grid 1024; block 128
// args: out sums float32[131072] nan; in x float32[131072,256] uniform; rows int32 131072; cols int32 256
// launch: row_sum_thread; grid 2048; block 256
// args: out sums float32[524288] nan; in x float32[524288,33] uniform; rows int32 524288; cols int32 33
// expect: sums = summed(x, 1)
extern "C" __global__ void row_sum_thread(float* sums, const float* x, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < cols; c++) sum += x[row * cols + c];
    sums[row] = sum;
}
