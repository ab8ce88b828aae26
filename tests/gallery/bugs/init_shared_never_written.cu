// init_shared_never_written: shared memory is not zero at the start
// launch: count; grid 1; block 64
// args: out out int32[64] -1
extern "C" __global__ void count(int* out) {
    __shared__ int s[64];
    int before = s[threadIdx.x];  // BUG initcheck uninitialised read
    s[threadIdx.x] = before + 1;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
