// convolution_global: as many weights as said, from global memory, where all lanes read the same one
// kind: convolution
// set: held out
// launch: convolution_global; grid 3; block 128
// args: out out float32[300] nan; in x float32[309] uniform; in weights float32[9] uniform; count int32 9; n int32 300
// launch: convolution_global; grid 8192; block 128
// args: out out float32[1048576] nan; in x float32[1048585] uniform; in weights float32[9] uniform; count int32 9; n int32 1048576
// launch: convolution_global; grid 65536; block 128
// args: out out float32[8388608] nan; in x float32[8388633] uniform; in weights float32[25] uniform; count int32 25; n int32 8388608
// launch: convolution_global; grid 16384; block 128
// args: out out float32[2097152] nan; in x float32[2097281] uniform; in weights float32[129] uniform; count int32 129; n int32 2097152
// expect: out = close(np.correlate(wide(x), wide(weights), 'valid')[:n], 20, 9)
extern "C" __global__ void convolution_global(float* out, const float* x, const float* weights, int count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < count; j++) sum += weights[j] * x[i + j];
    out[i] = sum;
}
