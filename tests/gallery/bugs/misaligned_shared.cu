// misaligned_shared: a float2 at an odd word of shared memory
// launch: load; grid 1; block 16
// args: out out float32[16,2] nan
extern "C" __global__ void load(float2* out) {
    __shared__ __align__(16) float s[64];
    for (int i = threadIdx.x; i < 64; i += 16) s[i] = i;
    __syncthreads();
    out[threadIdx.x] = *(float2*)&s[2 * threadIdx.x + 1];  // BUG memcheck misaligned
}
