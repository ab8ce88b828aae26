// dot_product: partial sums over a grid stride, a tree in shared memory, one atomic a block
// launch: dot; grid 3; block 64
// args: out sum float32[1] 0; in a float32[500] uniform; in b float32[500] uniform; n int32 500
extern "C" __global__ void dot(float* sum, const float* a, const float* b, int n) {
    __shared__ float s[64];
    float mine = 0.0f;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) mine += a[i] * b[i];
    s[threadIdx.x] = mine;
    __syncthreads();
    for (int half = 32; half > 0; half >>= 1) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(sum, s[0]);
}
