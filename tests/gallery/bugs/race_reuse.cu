// race_reuse: the buffer is filled anew while others still read the first result
// launch: ranges; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] integers(0,100)
extern "C" __global__ void ranges(int* out, const int* in) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int first = s[(t + 40) % 64];  // OTHER
    s[t] = 2 * in[t];  // BUG racecheck race
    __syncthreads();
    out[t] = first + s[63 - t];
}
