// shuffle_widths: shuffles in groups of 8 and 16, broadcast and butterfly
// launch: shuffle; grid 1; block 32
// args: out out int32[4,32] -1; in in int32[32] integers(0,1000)
extern "C" __global__ void shuffle(int* out, const int* in) {
    int t = threadIdx.x, value = in[t];
    out[t] = __shfl_sync(0xffffffff, value, 3, 8);
    out[32 + t] = __shfl_up_sync(0xffffffff, value, 2, 16);
    out[64 + t] = __shfl_down_sync(0xffffffff, value, 5, 8);
    out[96 + t] = __shfl_xor_sync(0xffffffff, value, 6, 16);
}
