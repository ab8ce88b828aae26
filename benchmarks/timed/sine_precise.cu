// sine_precise: sinf with its range reduction, over small arguments
// kind: special functions
// set: build
// launch: sine_precise; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 2; n int32 500
// launch: sine_precise; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 32; n int32 1048576
// launch: sine_precise; grid 256; block 256
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 128; n int32 65536
// launch: sine_precise; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; rounds int32 8; n int32 16777216
// expect: out = (np.sin(wide(x)) + np.sin(2 * wide(x)), 1e-5)
extern "C" __global__ void sine_precise(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 1; j <= rounds; j++) sum += sinf(j * x[i]);
    out[i] = sum;
}
