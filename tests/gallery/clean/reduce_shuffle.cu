// reduce_shuffle: warps sum with shuffles, the first warp sums the warps
// launch: reduce; grid 2; block 256
// args: out sums float32[2] nan; in values float32[500] uniform; n int32 500
// expect: sums = summed(blocks(values, 256), 1)
__inline__ __device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

extern "C" __global__ void reduce(float* sums, const float* values, int n) {
    __shared__ float warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float value = warp_sum(i < n ? values[i] : 0.0f);
    if (lane == 0) warps[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_sum(lane < blockDim.x / 32 ? warps[lane] : 0.0f);
        if (lane == 0) sums[blockIdx.x] = value;
    }
}
