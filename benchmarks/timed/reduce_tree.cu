// reduce_tree: a sum per block with a tree in shared memory, neighbours stay active
// kind: reduction
// set: held out
// launch: reduce_tree; grid 4; block 128
// args: out sums float32[4] nan; in x float32[4,128] uniform
// launch: reduce_tree; grid 4096; block 256
// args: out sums float32[4096] nan; in x float32[4096,256] uniform
// launch: reduce_tree; grid 32768; block 1024
// args: out sums float32[32768] nan; in x float32[32768,1024] uniform
// launch: reduce_tree; grid 400000; block 128
// args: out sums float32[400000] nan; in x float32[400000,128] uniform
// expect: sums = summed(x, 1)
extern "C" __global__ void reduce_tree(float* sums, const float* x) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
