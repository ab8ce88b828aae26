// reduce_sequential: the sum of each block by halving, without bank conflicts
// launch: reduce; grid 3; block 128
// args: out sums float32[3] nan; in values float32[300] uniform; n int32 300
extern "C" __global__ void reduce(float* sums, const float* values, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? values[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
