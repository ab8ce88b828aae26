// rsqrt_normalise: vectors of three in three arrays brought to length 1 by rsqrtf
// kind: special functions
// set: held out
// launch: rsqrt_normalise; grid 2; block 256
// args: out v float32[3,500] uniform; n int32 500
// launch: rsqrt_normalise; grid 4096; block 256
// args: out v float32[3,1048576] uniform; n int32 1048576
// launch: rsqrt_normalise; grid 32768; block 256
// args: out v float32[3,8388608] uniform; n int32 8388608
// launch: rsqrt_normalise; grid 262144; block 256
// args: out v float32[3,67108864] uniform; n int32 67108864
// expect: v = close(v / np.sqrt((wide(v) ** 2).sum(0)), 20, 1)
extern "C" __global__ void rsqrt_normalise(float* v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = v[i], y = v[n + i], z = v[2 * n + i], scale = rsqrtf(x * x + y * y + z * z);
    v[i] = x * scale;
    v[n + i] = y * scale;
    v[2 * n + i] = z * scale;
}
