// warp_votes: __any_sync, __all_sync and __ballot_sync of each warp
// launch: votes; grid 1; block 128
// args: out any int32[4] -1; out all int32[4] -1; out bits uint32[4] 7; in values int32[128] integers(0,100)
extern "C" __global__ void votes(int* any, int* all, unsigned* bits, const int* values) {
    int warp = threadIdx.x / 32, value = values[threadIdx.x];
    int one = __any_sync(0xffffffff, value == 42 + warp);
    int each = __all_sync(0xffffffff, value < 90 + 10 * (warp == 3));
    unsigned odd = __ballot_sync(0xffffffff, value & 1);
    if (threadIdx.x % 32 == 0) {
        any[warp] = one != 0;
        all[warp] = each != 0;
        bits[warp] = odd;
    }
}
