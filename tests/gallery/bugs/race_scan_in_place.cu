// race_scan_in_place: Hillis and Steele with one buffer and one barrier
// launch: scan; grid 1; block 128
// args: out out int32[128] -1; in in int32[128] integers(0,9)
extern "C" __global__ void scan(int* out, const int* in) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
        int below = t >= step ? s[t - step] : 0;  // BUG racecheck race
        s[t] += below;  // OTHER
        __syncthreads();
    }
    out[t] = s[t];
}
