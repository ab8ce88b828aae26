// sync_after_return: threads behind the end are gone when the others come to the barrier
// launch: reverse; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] arange; n int32 50
extern "C" __global__ void reverse(int* out, const int* in, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = in[t];
    __syncthreads();  // BUG synccheck divergent barrier
    out[t] = s[n - 1 - t];
}
