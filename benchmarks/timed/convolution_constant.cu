// convolution_constant: 33 weights in constant memory, the row from global memory
// kind: convolution
// set: build
// launch: convolution_constant; grid 2; block 256
// args: out out float32[500] nan; in x float32[532] uniform; n int32 500
// launch: convolution_constant; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048608] uniform; n int32 1048576
// launch: convolution_constant; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[8388640] uniform; n int32 8388608
// launch: convolution_constant; grid 262144; block 256
// args: out out float32[67108864] nan; in x float32[67108896] uniform; n int32 67108864
// expect: out = close(np.convolve(wide(x), 17 - np.abs(np.arange(33) - 16), 'valid'), 40, 289)
__constant__ float weights[33] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f, 11.0f, 12.0f, 13.0f, 14.0f, 15.0f, 16.0f, 17.0f, 16.0f, 15.0f, 14.0f, 13.0f, 12.0f, 11.0f, 10.0f, 9.0f, 8.0f, 7.0f, 6.0f, 5.0f, 4.0f, 3.0f, 2.0f, 1.0f};

extern "C" __global__ void convolution_constant(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < 33; j++) sum += weights[j] * x[i + j];
    out[i] = sum;
}
