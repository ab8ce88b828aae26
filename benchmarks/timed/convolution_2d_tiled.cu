// convolution_2d_tiled: 5 x 5 weights, tiles of 16 x 16 with rims in shared memory
// kind: convolution
// set: build
// launch: convolution_2d_tiled; grid 3 2; block 16 16
// args: out out float32[30,40] nan; in x float32[34,44] uniform; in weights float32[5,5] uniform; rows int32 30; cols int32 40
// launch: convolution_2d_tiled; grid 64 64; block 16 16
// args: out out float32[1024,1024] nan; in x float32[1028,1028] uniform; in weights float32[5,5] uniform; rows int32 1024; cols int32 1024
// launch: convolution_2d_tiled; grid 256 256; block 16 16
// args: out out float32[4096,4096] nan; in x float32[4100,4100] uniform; in weights float32[5,5] uniform; rows int32 4096; cols int32 4096
// launch: convolution_2d_tiled; grid 512 512; block 16 16
// args: out out float32[8192,8192] nan; in x float32[8196,8196] uniform; in weights float32[5,5] uniform; rows int32 8192; cols int32 8192
// expect: out = close(sum(wide(x)[r : r + 30, c : c + 40] * weights[r, c] for r in range(5) for c in range(5)), 30, 25)
extern "C" __global__ void convolution_2d_tiled(float* out, const float* x, const float* weights, int rows, int cols) {
    __shared__ float tile[20][20], w[25];
    int first = blockIdx.y * 16, left = blockIdx.x * 16, thread = threadIdx.y * 16 + threadIdx.x;
    if (thread < 25) w[thread] = weights[thread];
    for (int j = thread; j < 400; j += 256) {
        int r = min(first + j / 20, rows + 3), c = min(left + j % 20, cols + 3);
        tile[j / 20][j % 20] = x[r * (cols + 4) + c];
    }
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < 5; r++)
        for (int c = 0; c < 5; c++) sum += w[r * 5 + c] * tile[threadIdx.y + r][threadIdx.x + c];
    int row = first + threadIdx.y, col = left + threadIdx.x;
    if (row < rows && col < cols) out[row * cols + col] = sum;
}
