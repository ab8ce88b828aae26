// reduce_tree_divergent: a sum per block with a tree in which the active lanes lie ever further apart
// kind: reduction
// set: build
// launch: reduce_tree_divergent; grid 4; block 128
// args: out sums float32[4] nan; in x float32[4,128] uniform
// launch: reduce_tree_divergent; grid 4096; block 256
// args: out sums float32[4096] nan; in x float32[4096,256] uniform
// launch: reduce_tree_divergent; grid 32768; block 1024
// args: out sums float32[32768] nan; in x float32[32768,1024] uniform
// launch: reduce_tree_divergent; grid 200000; block 128
// args: out sums float32[200000] nan; in x float32[200000,128] uniform
// expect: sums = summed(x, 1)
extern "C" __global__ void reduce_tree_divergent(float* sums, const float* x) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (t % (2 * step) == 0) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
