// oob_far_away: an index a million times too large
// launch: fill; grid 1; block 32
// args: out out int32[32] -1
extern "C" __global__ void fill(int* out) {
    long long i = threadIdx.x * 1000000000LL;
    out[i] = 1;  // BUG memcheck out of bounds
}
