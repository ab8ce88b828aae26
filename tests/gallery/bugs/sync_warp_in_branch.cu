// sync_warp_in_branch: the mask names lanes that are elsewhere
// launch: barrier; grid 1; block 32
// args: out out int32[32] 0
extern "C" __global__ void barrier(int* out) {
    if (threadIdx.x < 16) {
        out[threadIdx.x] = 1;
        __syncwarp();  // BUG synccheck divergent warp
        out[threadIdx.x] += 1;
    }
    out[threadIdx.x] *= 2;
}
