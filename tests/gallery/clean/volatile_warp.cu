// volatile_warp: the last steps of a reduction in one warp, volatile and __syncwarp
// launch: reduce; grid 2; block 64
// args: out sums int32[2] -1; in values int32[128] integers(-30,30)
// expect: sums = values.reshape(2, 64).sum(1)
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = values[blockIdx.x * 64 + t];
    __syncthreads();
    if (t < 32) {
#pragma unroll 1
        for (int half = 32; half > 0; half /= 2) {
            int sum = s[t] + (t < half ? s[t + half] : 0);
            __syncwarp();
            s[t] = sum;
            __syncwarp();
        }
        if (t == 0) sums[blockIdx.x] = s[0];
    }
}
