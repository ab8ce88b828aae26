// reduce_first_add: each thread adds two elements while loading, then the block halves
// launch: reduce; grid 2; block 64
// args: out largest float32[2] nan; in values float32[250] normal; n int32 250
// expect: largest = blocks(values, 128, -1e30).max(1)
extern "C" __global__ void reduce(float* largest, const float* values, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    float mine = i < n ? values[i] : -3.4e38f;
    if (i + 64 < n) mine = fmaxf(mine, values[i + 64]);
    s[t] = mine;
    __syncthreads();
    for (int half = 32; half > 0; half >>= 1) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    if (t == 0) largest[blockIdx.x] = s[0];
}
