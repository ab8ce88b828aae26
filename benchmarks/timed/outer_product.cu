// outer_product: A = x times transposed y, one element per thread
// kind: matvec
// set: held out
// launch: outer_product; grid 2 3; block 32 8
// args: out A float32[20,50] nan; in x float32[20] uniform; in y float32[50] uniform; rows int32 20; cols int32 50
// launch: outer_product; grid 64 256; block 32 8
// args: out A float32[2048,2048] nan; in x float32[2048] uniform; in y float32[2048] uniform; rows int32 2048; cols int32 2048
// launch: outer_product; grid 256 1024; block 32 8
// args: out A float32[8192,8192] nan; in x float32[8192] uniform; in y float32[8192] uniform; rows int32 8192; cols int32 8192
// launch: outer_product; grid 1024 1024; block 16 16
// args: out A float32[16384,16384] nan; in x float32[16384] uniform; in y float32[16384] uniform; rows int32 16384; cols int32 16384
// expect: A = np.outer(x, y)
extern "C" __global__ void outer_product(float* A, const float* x, const float* y, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) A[row * cols + col] = x[row] * y[col];
}
