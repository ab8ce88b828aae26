// fp64_fma_chains: ILP independent chains of double-precision multiply-adds per thread
// kind: arithmetic
// set: build
// launch: fp64_fma_chains; grid 2; block 256; options -DILP=2
// args: out out float64[500] nan; in x float64[500] uniform; rounds int32 3; n int32 500
// launch: fp64_fma_chains; grid 4096; block 256; options -DILP=1
// args: out out float64[1048576] nan; in x float64[1048576] uniform; rounds int32 512; n int32 1048576
// launch: fp64_fma_chains; grid 128; block 256; options -DILP=1
// args: out out float64[32768] nan; in x float64[32768] uniform; rounds int32 4096; n int32 32768
// launch: fp64_fma_chains; grid 1024; block 256; options -DILP=4
// args: out out float64[262144] nan; in x float64[262144] uniform; rounds int32 1024; n int32 262144
// expect: out = close((2 * x + 1) / 8 + 2 * (2 - 2 / 8), 40, 4, EPS64)
extern "C" __global__ void fp64_fma_chains(double* out, const double* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v[ILP], sum = 0;
    #pragma unroll
    for (int c = 0; c < ILP; c++) v[c] = x[i] + c;
    for (int j = 0; j < rounds; j++)
        #pragma unroll
        for (int c = 0; c < ILP; c++) v[c] = v[c] * 0.5 + 1.0;
    #pragma unroll
    for (int c = 0; c < ILP; c++) sum += v[c];
    out[i] = sum;
}
