// warp_reduce_intrinsic: __reduce_add_sync and its kin
// launch: reduce; grid 1; block 64
// args: out out int32[4,2] -1; in in int32[64] integers(-100,100)
extern "C" __global__ void reduce(int* out, const int* in) {
    int warp = threadIdx.x / 32, value = in[threadIdx.x];
    int sum = __reduce_add_sync(0xffffffff, value), least = __reduce_min_sync(0xffffffff, value);
    int most = __reduce_max_sync(0xffffffff, value), both = __reduce_xor_sync(0xffffffff, (unsigned)value);
    if (threadIdx.x % 32 == 0) {
        out[warp] = sum;
        out[2 + warp] = least;
        out[4 + warp] = most;
        out[6 + warp] = both;
    }
}
