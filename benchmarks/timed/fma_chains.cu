// fma_chains: ILP independent chains of fused multiply-adds per thread
// kind: arithmetic
// set: build
// launch: fma_chains; grid 2; block 256; options -DILP=2
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 3; n int32 500
// launch: fma_chains; grid 4096; block 256; options -DILP=1
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 1024; n int32 1048576
// launch: fma_chains; grid 128; block 256; options -DILP=1
// args: out out float32[32768] nan; in x float32[32768] uniform; rounds int32 8192; n int32 32768
// launch: fma_chains; grid 128; block 256; options -DILP=2
// args: out out float32[32768] nan; in x float32[32768] uniform; rounds int32 4096; n int32 32768
// launch: fma_chains; grid 256; block 256; options -DILP=4
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 2048; n int32 65536
// launch: fma_chains; grid 4096; block 256; options -DILP=8
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 1024; n int32 1048576
// expect: out = close((2 * wide(x) + 1) / 8 + 2 * (2 - 2 / 8), 40, 4)
extern "C" __global__ void fma_chains(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[ILP], sum = 0;
    #pragma unroll
    for (int c = 0; c < ILP; c++) v[c] = x[i] + c;
    for (int j = 0; j < rounds; j++)
        #pragma unroll
        for (int c = 0; c < ILP; c++) v[c] = v[c] * 0.5f + 1.0f;
    #pragma unroll
    for (int c = 0; c < ILP; c++) sum += v[c];
    out[i] = sum;
}
