// address_64: indices in 64 bits with a division and a remainder per element
// kind: integer
// set: build
// launch: address_64; grid 4; block 256
// args: out out float32[20,45] nan; in x float32[20,45] uniform; rows int64 20; cols int64 45; n int64 900
// launch: address_64; grid 7817; block 256
// args: out out float32[1000,2001] nan; in x float32[1000,2001] uniform; rows int64 1000; cols int64 2001; n int64 2001000
// launch: address_64; grid 62532; block 256
// args: out out float32[8000,2001] nan; in x float32[8000,2001] uniform; rows int64 8000; cols int64 2001; n int64 16008000
// launch: address_64; grid 390665; block 256
// args: out out float32[10000,10001] nan; in x float32[10000,10001] uniform; rows int64 10000; cols int64 10001; n int64 100010000
// expect: out = x[::-1]
extern "C" __global__ void address_64(float* out, const float* x, long long rows, long long cols, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long row = i / cols, col = i % cols;
    out[i] = x[(rows - 1 - row) * cols + col];
}
