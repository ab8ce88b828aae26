// sync_in_one_warp: a barrier that one of two warps reaches, before one that both reach
// launch: barrier; grid 1; block 64
// args: out out int32[64] 0
extern "C" __global__ void barrier(int* out) {
    if (threadIdx.x < 32) {
        out[threadIdx.x] = 1;
        __syncthreads();  // BUG synccheck divergent barrier
    }
    out[threadIdx.x] += 2;
    __syncthreads();  // OR
    out[threadIdx.x] += 3;
}
