// spilled_registers: more live numbers than the registers that the launch bounds leave
// kind: local memory
// set: held out
// launch: spilled_registers; grid 1; block 64
// args: out out float32[48,64] nan; in x float32[48,64] uniform; rounds int32 1
// launch: spilled_registers; grid 264; block 1024
// args: out out float32[48,270336] nan; in x float32[48,270336] uniform; rounds int32 4
// launch: spilled_registers; grid 1056; block 512
// args: out out float32[48,540672] nan; in x float32[48,540672] uniform; rounds int32 16
// launch: spilled_registers; grid 4096; block 256
// args: out out float32[48,1048576] nan; in x float32[48,1048576] uniform; rounds int32 2
// expect: out = np.vstack([close(wide(x)[1:] / 2 + x[0], 0)[0], x[:1]]), 1e-6 * np.ones(64)
extern "C" __global__ void __launch_bounds__(1024, 2) spilled_registers(float* out, const float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float v[48];
    #pragma unroll
    for (int j = 0; j < 48; j++) v[j] = x[i + j * step];
    for (int r = 0; r < rounds; r++) {
        float first = v[0];
        #pragma unroll
        for (int j = 0; j < 47; j++) v[j] = v[j + 1] * 0.5f + first;
        v[47] = first;
    }
    #pragma unroll
    for (int j = 0; j < 48; j++) out[i + j * step] = v[j];
}
