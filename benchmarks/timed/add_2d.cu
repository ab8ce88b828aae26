// add_2d: a matrix plus a matrix, in blocks of several shapes
// kind: 2-D
// set: build
// launch: add_2d; grid 4 2; block 16 16
// args: out out float32[30,50] nan; in a float32[30,50] uniform; in b float32[30,50] uniform; rows int32 30; cols int32 50
// launch: add_2d; grid 128 512; block 32 8
// args: out out float32[4096,4096] nan; in a float32[4096,4096] uniform; in b float32[4096,4096] uniform; rows int32 4096; cols int32 4096
// launch: add_2d; grid 256 256; block 16 16
// launch: add_2d; grid 1024 1024; block 8 8
// args: out out float32[8192,8192] nan; in a float32[8192,8192] uniform; in b float32[8192,8192] uniform; rows int32 8192; cols int32 8192
// launch: add_2d; grid 63 63; block 16 16
// args: out out float32[1000,1000] nan; in a float32[1000,1000] uniform; in b float32[1000,1000] uniform; rows int32 1000; cols int32 1000
// expect: out = a + b
extern "C" __global__ void add_2d(float* out, const float* a, const float* b, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[row * cols + col] = a[row * cols + col] + b[row * cols + col];
}
