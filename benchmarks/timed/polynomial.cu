// polynomial: a polynomial of degree 64 by Horner's rule, for ILP elements per thread
// kind: arithmetic
// set: held out
// launch: polynomial; grid 2; block 256; options -DILP=2
// args: out out float32[1000] nan; in x float32[1000] uniform(-0.5,0.5); c float32 0.5; n int32 1000
// launch: polynomial; grid 65536; block 256; options -DILP=1
// args: out out float32[16777216] nan; in x float32[16777216] uniform(-0.5,0.5); c float32 0.5; n int32 16777216
// launch: polynomial; grid 16384; block 256; options -DILP=4
// launch: polynomial; grid 131072; block 256; options -DILP=2
// args: out out float32[67108864] nan; in x float32[67108864] uniform(-0.5,0.5); c float32 0.5; n int32 67108864
// launch: polynomial; grid 256; block 256; options -DILP=8
// args: out out float32[524288] nan; in x float32[524288] uniform(-0.5,0.5); c float32 0.5; n int32 524288
// expect: out = close(c * (1 - wide(x) ** 65) / (1 - wide(x)), 130, 2)
extern "C" __global__ void polynomial(float* out, const float* x, float c, int n) {
    int first = blockIdx.x * blockDim.x * ILP + threadIdx.x;
    float v[ILP], sum[ILP] = {};
    #pragma unroll
    for (int j = 0; j < ILP; j++) v[j] = first + j * blockDim.x < n ? x[first + j * blockDim.x] : 0;
    #pragma unroll
    for (int power = 0; power <= 64; power++)
        #pragma unroll
        for (int j = 0; j < ILP; j++) sum[j] = sum[j] * v[j] + c;
    #pragma unroll
    for (int j = 0; j < ILP; j++)
        if (first + j * blockDim.x < n) out[first + j * blockDim.x] = sum[j];
}
