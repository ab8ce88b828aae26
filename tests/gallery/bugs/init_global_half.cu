// init_global_half: the kernel fills half of its work array and reads all
// launch: fill; grid 1; block 64
// args: out out int32[64] -1; scratch work int32[64] empty
extern "C" __global__ void fill(int* out, int* work) {
    int t = threadIdx.x;
    if (t % 2 == 0) work[t] = t;
    __syncthreads();
    out[t] = work[63 - t];  // BUG initcheck uninitialised read
}
