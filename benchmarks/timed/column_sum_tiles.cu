// column_sum_tiles: sums of columns: blocks of 32 x 8 share a strip, and add their parts atomically
// kind: columns
// set: build
// launch: column_sum_tiles; grid 2 2; block 32 8
// args: out sums float32[50] 0.0; in x float32[70,50] uniform; rows int32 70; cols int32 50
// launch: column_sum_tiles; grid 32 16; block 32 8
// args: out sums float32[1024] 0.0; in x float32[4096,1024] uniform; rows int32 4096; cols int32 1024
// launch: column_sum_tiles; grid 128 32; block 32 8
// args: out sums float32[4096] 0.0; in x float32[16384,4096] uniform; rows int32 16384; cols int32 4096
// launch: column_sum_tiles; grid 2 256; block 32 8
// args: out sums float32[64] 0.0; in x float32[1048576,64] uniform; rows int32 1048576; cols int32 64
// expect: sums = summed(x, 0)
extern "C" __global__ void column_sum_tiles(float* sums, const float* x, int rows, int cols) {
    __shared__ float parts[8][32];
    int col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (col < cols)
        for (int r = blockIdx.y * 8 + threadIdx.y; r < rows; r += 8 * gridDim.y) sum += x[r * cols + col];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || col >= cols) return;
    for (int y = 1; y < 8; y++) sum += parts[y][threadIdx.x];
    atomicAdd(&sums[col], sum);
}
