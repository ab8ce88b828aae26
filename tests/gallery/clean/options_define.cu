// options_define: a size that an option sets
// launch: fill; grid 2; block 32; options -DVALUE=7 -DTILE=16
// args: out out int32[64] -1
// launch: fill; grid 2; block 32; options -DVALUE=9
// args: out out int32[64] -1
#ifndef TILE
#define TILE 8
#endif
extern "C" __global__ void fill(int* out) {
    __shared__ int s[TILE];
    if (threadIdx.x < TILE) s[threadIdx.x] = VALUE * threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x % TILE];
}
