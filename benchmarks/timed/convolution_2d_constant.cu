// convolution_2d_constant: 3 x 3 weights in constant memory and four results per thread, from global memory
// kind: convolution
// set: held out
// launch: convolution_2d_constant; grid 2 1; block 32 8
// args: out out float32[28,40] nan; in x float32[30,42] uniform; rows int32 28; cols int32 40
// launch: convolution_2d_constant; grid 32 32; block 32 8
// args: out out float32[1024,1024] nan; in x float32[1026,1026] uniform; rows int32 1024; cols int32 1024
// launch: convolution_2d_constant; grid 128 128; block 32 8
// args: out out float32[4096,4096] nan; in x float32[4098,4098] uniform; rows int32 4096; cols int32 4096
// launch: convolution_2d_constant; grid 256 256; block 32 8
// args: out out float32[8192,8192] nan; in x float32[8194,8194] uniform; rows int32 8192; cols int32 8192
// expect: out = close(sum(wide(x)[r : r + 28, c : c + 40] * [1, 2, 1][r] * [1, 2, 1][c] for r in range(3) for c in range(3)), 12, 16)
__constant__ float weights[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};

extern "C" __global__ void convolution_2d_constant(float* out, const float* x, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
    if (row >= rows || col >= cols) return;  // rows is a multiple of 4
    float sums[4] = {};
    #pragma unroll
    for (int r = 0; r < 6; r++)
        #pragma unroll
        for (int c = 0; c < 3; c++) {
            float value = x[(row + r) * (cols + 2) + col + c];
            #pragma unroll
            for (int j = 0; j < 4; j++)
                if (r - j >= 0 && r - j < 3) sums[j] += weights[(r - j) * 3 + c] * value;
        }
    for (int j = 0; j < 4; j++) out[(row + j) * cols + col] = sums[j];
}
