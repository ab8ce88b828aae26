// scan_hillis_steele: inclusive prefix sum of a block, two buffers in shared memory
// launch: scan; grid 2; block 128
// args: out out int32[256] -1; in in int32[256] integers(-9,10)
extern "C" __global__ void scan(int* out, const int* in) {
    __shared__ int s[2][128];
    int t = threadIdx.x, now = 0;
    s[0][t] = in[blockIdx.x * 128 + t];
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step < 128; step *= 2) {
        s[1 - now][t] = s[now][t] + (t >= step ? s[now][t - step] : 0);
        now = 1 - now;
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = s[now][t];
}
