// sync_two_barriers_lanes: even and odd lanes wait at different barriers
// launch: barrier; grid 1; block 64
// args: out out int32[64] 0
extern "C" __global__ void barrier(int* out) {
    if (threadIdx.x % 2) {
        out[threadIdx.x] = 1;
        __syncthreads();  // BUG synccheck divergent barrier
        out[threadIdx.x] += 5;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();  // OR
        out[threadIdx.x] += 7;
    }
}
