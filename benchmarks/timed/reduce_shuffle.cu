// reduce_shuffle: a sum per block with shuffles, one element per thread
// kind: reduction
// set: build
// launch: reduce_shuffle; grid 4; block 128
// args: out sums float32[4] nan; in x float32[4,128] uniform
// launch: reduce_shuffle; grid 4096; block 256
// args: out sums float32[4096] nan; in x float32[4096,256] uniform
// launch: reduce_shuffle; grid 65536; block 1024
// args: out sums float32[65536] nan; in x float32[65536,1024] uniform
// launch: reduce_shuffle; grid 400000; block 128
// args: out sums float32[400000] nan; in x float32[400000,128] uniform
// expect: sums = summed(x, 1)
extern "C" __global__ void reduce_shuffle(float* sums, const float* x) {
    __shared__ float parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (warp) return;
    sum = lane < blockDim.x / 32 ? parts[lane] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[blockIdx.x] = sum;
}
