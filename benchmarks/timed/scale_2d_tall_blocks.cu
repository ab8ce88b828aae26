// scale_2d_tall_blocks: rows scaled by a factor each, in blocks that are 4 or 2 wide: parts of many lines
// kind: 2-D
// set: held out
// launch: scale_2d_tall_blocks; grid 8 1; block 4 64
// args: out out float32[50,30] nan; in x float32[50,30] uniform; in factors float32[50] uniform; rows int32 50; cols int32 30
// launch: scale_2d_tall_blocks; grid 512 32; block 4 64
// args: out out float32[2048,2048] nan; in x float32[2048,2048] uniform; in factors float32[2048] uniform; rows int32 2048; cols int32 2048
// launch: scale_2d_tall_blocks; grid 1024 128; block 4 64
// args: out out float32[8192,4096] nan; in x float32[8192,4096] uniform; in factors float32[8192] uniform; rows int32 8192; cols int32 4096
// launch: scale_2d_tall_blocks; grid 2048 32; block 2 128
// args: out out float32[4096,4096] nan; in x float32[4096,4096] uniform; in factors float32[4096] uniform; rows int32 4096; cols int32 4096
// expect: out = factors[:, None] * x
extern "C" __global__ void scale_2d_tall_blocks(float* out, const float* x, const float* factors, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[row * cols + col] = factors[row] * x[row * cols + col];
}
