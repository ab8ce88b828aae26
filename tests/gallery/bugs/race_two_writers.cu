// race_two_writers: two warps write different values to the same words
// launch: write; grid 1; block 64
// args: out out int32[32] -1
extern "C" __global__ void write(int* out) {
    __shared__ int s[32];
    s[threadIdx.x % 32] = threadIdx.x;  // BUG racecheck race
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = s[threadIdx.x];
}
