// dynamic_shared: the block reversed in shared memory whose size the launch gives
// launch: reverse; grid 2; block 96; shared 384
// args: out out float32[192] nan; in in float32[192] uniform
extern __shared__ float s[];

extern "C" __global__ void reverse(float* out, const float* in) {
    int t = threadIdx.x, first = blockIdx.x * blockDim.x;
    s[t] = in[first + t];
    __syncthreads();
    out[first + t] = s[blockDim.x - 1 - t];
}
