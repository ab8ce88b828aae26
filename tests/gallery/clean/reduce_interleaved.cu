// reduce_interleaved: the sum of each block, neighbours first, so that warps diverge
// launch: reduce; grid 3; block 128
// args: out sums float32[3] nan; in values float32[300] uniform; n int32 300
extern "C" __global__ void reduce(float* sums, const float* values, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? values[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (t % (2 * step) == 0) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
