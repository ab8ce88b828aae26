// race_warp_volatile: volatile does not keep the lanes of a warp together
// launch: reduce; grid 1; block 64
// args: out sums int32[1] -1; in values int32[64] integers(0,9)
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = values[t];
    __syncthreads();
    if (t < 32) {
        volatile int* v = s;
#pragma unroll 1
        for (int half = 32; half > 0; half /= 2)
            v[t] = v[t] + (t < half ? v[t + half] : 0);  // BUG racecheck race
        if (t == 0) sums[0] = v[0];
    }
}
