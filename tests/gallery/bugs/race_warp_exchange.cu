// race_warp_exchange: lanes read what their neighbours in the warp write, with nothing between
// launch: rotate; grid 1; block 32
// args: out out int32[32] -1; in in int32[32] arange
extern "C" __global__ void rotate(int* out, const int* in) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];  // OTHER
    out[t] = s[(t + 1) % 32];  // BUG racecheck race
}
