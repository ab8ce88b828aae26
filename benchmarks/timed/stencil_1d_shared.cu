// stencil_1d_shared: the sum of 17 neighbours, from a tile with its rims in shared memory
// kind: stencil
// set: held out
// launch: stencil_1d_shared; grid 3; block 256
// args: out out float32[600] nan; in x float32[600] uniform; n int32 600
// launch: stencil_1d_shared; grid 8192; block 256
// args: out out float32[2097152] nan; in x float32[2097152] uniform; n int32 2097152
// launch: stencil_1d_shared; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; n int32 16777216
// launch: stencil_1d_shared; grid 393216; block 256
// args: out out float32[100663296] nan; in x float32[100663296] uniform; n int32 100663296
// expect: out = close(np.convolve(wide(x), np.ones(17), 'same'), 17, 17)
extern "C" __global__ void stencil_1d_shared(float* out, const float* x, int n) {
    __shared__ float tile[256 + 16];
    int first = blockIdx.x * 256 - 8;
    for (int j = threadIdx.x; j < 272; j += 256) tile[j] = first + j >= 0 && first + j < n ? x[first + j] : 0;
    __syncthreads();
    float sum = 0;
    for (int j = 0; j < 17; j++) sum += tile[threadIdx.x + j];
    if (first + 8 + threadIdx.x < n) out[first + 8 + threadIdx.x] = sum;
}
