// sync_in_branch_48: a barrier for one and a half warps of two
// launch: barrier; grid 1; block 64
// args: out out int32[64] -1
extern "C" __global__ void barrier(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 48) {
        __syncthreads();  // BUG synccheck divergent barrier
        out[threadIdx.x] = s[threadIdx.x];
    }
}
