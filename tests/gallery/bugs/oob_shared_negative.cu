// oob_shared_negative: the left neighbour of the first thread
// launch: stencil; grid 1; block 32
// args: out out float32[32] nan; in in float32[32] uniform
extern "C" __global__ void stencil(float* out, const float* in) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[t - 1] + s[t];  // BUG memcheck out of bounds
}
