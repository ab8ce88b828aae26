// strided_pairs: even elements become sums of neighbours: loads and stores of 8-byte pairs by scalars
// kind: strided
// set: held out
// launch: strided_pairs; grid 2; block 256
// args: out x float32[500,2] uniform; n int32 500
// launch: strided_pairs; grid 8192; block 256
// args: out x float32[2097152,2] uniform; n int32 2097152
// launch: strided_pairs; grid 65536; block 256
// args: out x float32[16777216,2] uniform; n int32 16777216
// launch: strided_pairs; grid 262144; block 256
// args: out x float32[67108864,2] uniform; n int32 67108864
// expect: x = x + np.c_[x[:, 1], 0 * x[:, 1]]
extern "C" __global__ void strided_pairs(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[2 * i] += x[2 * i + 1];
}
