// trap: the kernel stops itself
// launch: check; grid 1; block 32
// args: out out int32[32] -1; in in int32[32] arange
extern "C" __global__ void check(int* out, const int* in) {
    if (in[threadIdx.x] == 20)
        __trap();  // BUG memcheck trap
    out[threadIdx.x] = in[threadIdx.x];
}
