// sync_shuffle_in_branch: a shuffle with the full mask that half of the warp reaches
// launch: sums; grid 1; block 32
// args: out out int32[32] -1; in in int32[32] arange
extern "C" __global__ void sums(int* out, const int* in) {
    int value = in[threadIdx.x];
    if (threadIdx.x < 16) {
        value += __shfl_down_sync(0xffffffff, value, 8);  // BUG synccheck divergent warp
        out[threadIdx.x] = value;
    } else {
        out[threadIdx.x] = 3 * value;
    }
}
