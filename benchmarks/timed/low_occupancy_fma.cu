// low_occupancy_fma: a chain of multiply-adds by few warps: the launch's dynamic shared memory keeps other blocks away
// kind: latency
// set: held out
// launch: low_occupancy_fma; grid 8; block 64; shared 1024
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 3; n int32 500
// launch: low_occupancy_fma; grid 528; block 32; shared 49152
// args: out out float32[16896] nan; in x float32[16896] uniform; rounds int32 4096; n int32 16896
// launch: low_occupancy_fma; grid 16384; block 64; shared 49152
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 256; n int32 1048576
// launch: low_occupancy_fma; grid 2048; block 128; shared 30000
// args: out out float32[262144] nan; in x float32[262144] uniform; rounds int32 1024; n int32 262144
// expect: out = close(wide(x) / 8 + 2 - 2 / 8, 10, 3)
extern __shared__ float s[];

extern "C" __global__ void low_occupancy_fma(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int j = 0; j < rounds; j++) v = v * 0.5f + 1.0f;
    s[threadIdx.x] = v;
    out[i] = s[threadIdx.x];
}
