// exp_sqrt: rounds of __expf and sqrtf
// kind: special functions
// set: build
// launch: exp_sqrt; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 1; n int32 500
// launch: exp_sqrt; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 64; n int32 1048576
// launch: exp_sqrt; grid 256; block 256
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 256; n int32 65536
// launch: exp_sqrt; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; rounds int32 16; n int32 16777216
// expect: out = close(np.exp(-np.sqrt(wide(x) + 1)), 20, 1)
extern "C" __global__ void exp_sqrt(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int j = 0; j < rounds; j++) v = __expf(-sqrtf(v + 1.0f));
    out[i] = v;
}
