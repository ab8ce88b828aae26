// several_shared: three shared arrays of different types
// launch: mix; grid 1; block 64
// args: out out float32[64] nan; in in float32[64] uniform
extern "C" __global__ void mix(float* out, const float* in) {
    __shared__ char flags[64];
    __shared__ float values[64];
    __shared__ int2 pairs[64];
    int t = threadIdx.x;
    flags[t] = in[t] > 0;
    values[t] = in[t];
    pairs[t] = make_int2(63 - t, (t + 5) % 64);
    __syncthreads();
    out[t] = flags[pairs[t].x] ? values[pairs[t].y] : -values[pairs[63 - t].x];
}
