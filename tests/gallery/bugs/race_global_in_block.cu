// race_global_in_block: global memory between the warps of a block, without a barrier
// launch: reverse; grid 1; block 64
// args: out out int32[64] -1; scratch work int32[64] 0; in in int32[64] arange
extern "C" __global__ void reverse(int* out, int* work, const int* in) {
    int t = threadIdx.x;
    work[t] = in[t] + 1;  // OTHER
    out[t] = work[63 - t];  // BUG racecheck race
}
