// sync_in_half_warp: a barrier that half of the lanes reach
// launch: barrier; grid 1; block 32
// args: out out int32[32] 0
extern "C" __global__ void barrier(int* out) {
    int lane = threadIdx.x % 32;
    if (lane < 16) {
        out[lane] = 1;
        __syncthreads();  // BUG synccheck divergent barrier
    }
    out[threadIdx.x] += 2;
}
