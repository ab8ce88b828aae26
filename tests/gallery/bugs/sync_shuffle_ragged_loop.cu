// sync_shuffle_ragged_loop: a shuffle in a loop that some lanes leave sooner
// launch: sums; grid 1; block 32
// args: out out int32[32] -1; in in int32[100] arange; n int32 50
extern "C" __global__ void sums(int* out, const int* in, int n) {
    int sum = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
        int value = in[i];
        sum += __shfl_xor_sync(0xffffffff, value, 1);  // BUG synccheck divergent warp
    }
    out[threadIdx.x] = sum;
}
