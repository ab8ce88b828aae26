// sync_loop_of_warps: warps go round a loop with a barrier a different number of times
// launch: rounds; grid 1; block 96
// args: out out int32[96] 0
extern "C" __global__ void rounds(int* out) {
    int warp = threadIdx.x / 32;
    for (int i = 0; i <= warp; i++) {
        out[threadIdx.x] += i;
        __syncthreads();  // BUG synccheck divergent barrier
    }
    out[threadIdx.x] += 100;
    __syncthreads();  // OR
    out[threadIdx.x] += 1;
}
