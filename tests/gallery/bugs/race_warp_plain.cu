// race_warp_plain: the last warp adds without __syncwarp
// launch: reduce; grid 1; block 64
// args: out sums int32[1] -1; in values int32[64] integers(0,9)
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = values[t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2)
        if (t < half) s[t] += s[t + half];  // BUG racecheck race
    if (t == 0) sums[0] = s[0];
}
