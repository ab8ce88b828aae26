// race_reverse: the other half of the block may not have written yet
// launch: reverse; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] arange
// also: initcheck
extern "C" __global__ void reverse(int* out, const int* in) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];  // OTHER
    out[t] = s[63 - t];  // BUG racecheck race
}
