// small_grid_dots: a handful of blocks, each the inner product of two long rows
// kind: latency
// set: build
// launch: small_grid_dots; grid 2; block 64
// args: out out float32[2] nan; in x float32[2,300] uniform; in y float32[2,300] uniform; cols int32 300
// launch: small_grid_dots; grid 20; block 256
// args: out out float32[20] nan; in x float32[20,16384] uniform; in y float32[20,16384] uniform; cols int32 16384
// launch: small_grid_dots; grid 8; block 1024
// args: out out float32[8] nan; in x float32[8,262144] uniform; in y float32[8,262144] uniform; cols int32 262144
// launch: small_grid_dots; grid 100; block 128
// args: out out float32[100] nan; in x float32[100,65536] uniform; in y float32[100,65536] uniform; cols int32 65536
// expect: out = summed(wide(x) * y, 1)
extern "C" __global__ void small_grid_dots(float* out, const float* x, const float* y, int cols) {
    __shared__ float parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += x[blockIdx.x * cols + c] * y[blockIdx.x * cols + c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < blockDim.x / 32; w++) sum += parts[w];
    out[blockIdx.x] = sum;
}
