// stencil_1d: the mean of 7 neighbours, from global memory
// kind: stencil
// set: build
// launch: stencil_1d; grid 3; block 256
// args: out out float32[600] 0.0; in x float32[600] uniform; n int32 600
// launch: stencil_1d; grid 8192; block 256
// args: out out float32[2097152] 0.0; in x float32[2097152] uniform; n int32 2097152
// launch: stencil_1d; grid 65536; block 256
// args: out out float32[16777216] 0.0; in x float32[16777216] uniform; n int32 16777216
// launch: stencil_1d; grid 393216; block 256
// args: out out float32[100663296] 0.0; in x float32[100663296] uniform; n int32 100663296
// expect: out = close(np.r_[0, 0, 0, np.convolve(wide(x), np.ones(7) / 7, 'valid'), 0, 0, 0], 9, 1)
extern "C" __global__ void stencil_1d(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 3 || i >= n - 3) return;
    float sum = 0;
    for (int d = -3; d <= 3; d++) sum += x[i + d];
    out[i] = sum / 7;
}
