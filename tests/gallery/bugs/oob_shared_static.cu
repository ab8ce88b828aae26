// oob_shared_static: the last thread writes behind its shared array
// launch: shift; grid 1; block 64
// args: out out int32[64] -1
extern "C" __global__ void shift(int* out) {
    __shared__ int s[64];
    s[threadIdx.x + 1] = threadIdx.x;  // BUG memcheck out of bounds
    if (threadIdx.x == 0) s[0] = 0;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
