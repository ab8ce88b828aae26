// oob_shared_dynamic: the launch gives 128 bytes for 64 ints
// launch: reverse; grid 1; block 64; shared 128
// args: out out int32[64] -1
extern "C" __global__ void reverse(int* out) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;  // BUG memcheck out of bounds
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
