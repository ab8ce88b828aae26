// active_mask: which lanes are here, before, in and behind a branch
// launch: masks; grid 1; block 48
// args: out out uint32[3,48] 7
extern "C" __global__ void masks(unsigned* out) {
    int t = threadIdx.x, lane = t % warpSize;
    out[t] = __activemask();
    if (lane < 8 + t / warpSize) out[48 + t] = __popc(__activemask());
    else out[48 + t] = 100;
    __syncwarp(t < 32 ? 0xffffffff : 0xffff);
    out[96 + t] = warpSize;
}
