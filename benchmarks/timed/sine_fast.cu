// sine_fast: sums of __sinf and __cosf over harmonics
// kind: special functions
// set: build
// launch: sine_fast; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 2; n int32 500
// launch: sine_fast; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 128; n int32 1048576
// launch: sine_fast; grid 256; block 256
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 512; n int32 65536
// launch: sine_fast; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; rounds int32 16; n int32 16777216
// expect: out = (wide(np.cos(wide(x)) * (np.sin(wide(x)) + np.sin(2 * wide(x)))), 1e-5)
extern "C" __global__ void sine_fast(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], sum = 0;
    for (int j = 1; j <= rounds; j++) sum += __sinf(j * v) * __cosf(v);
    out[i] = sum;
}
