// sync_loop_of_lanes: lanes go round a loop with a barrier a different number of times
// launch: rounds; grid 1; block 64
// args: out out int32[64] 0; n int32 40
extern "C" __global__ void rounds(int* out, int n) {
    for (int i = threadIdx.x; i < n; i += 16) {
        out[threadIdx.x] += i;
        __syncthreads();  // BUG synccheck divergent barrier
    }
}
