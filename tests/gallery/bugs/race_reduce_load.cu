// race_reduce_load: no barrier between filling and the first step
// launch: reduce; grid 1; block 128
// args: out sums int32[1] -1; in values int32[128] integers(0,9)
// also: initcheck
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = values[t];  // OTHER
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];  // BUG racecheck race
        __syncthreads();
    }
    if (t == 0) sums[0] = s[0];
}
