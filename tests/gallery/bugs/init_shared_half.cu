// init_shared_half: half of the threads fill, all read
// launch: fill; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] arange
extern "C" __global__ void fill(int* out, const int* in) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) s[t] = in[t];
    __syncthreads();
    out[t] = s[63 - t];  // BUG initcheck uninitialised read
}
