// half2_polynomial: two half-precision numbers at a time, 4 chains of multiply-adds per thread
// kind: arithmetic
// set: held out
// launch: half2_polynomial; grid 2; block 256
// args: out out float16[300,2] nan; in x float16[300,2] uniform; rounds int32 2; n int32 300
// launch: half2_polynomial; grid 4096; block 256
// args: out out float16[1048576,2] nan; in x float16[1048576,2] uniform; rounds int32 512; n int32 1048576
// launch: half2_polynomial; grid 512; block 256
// args: out out float16[131072,2] nan; in x float16[131072,2] uniform; rounds int32 2048; n int32 131072
// launch: half2_polynomial; grid 65536; block 256
// args: out out float16[16777216,2] nan; in x float16[16777216,2] uniform; rounds int32 16; n int32 16777216
// expect: out = close(wide(x) + 9, 30, 10, EPS16)
#include <cuda_fp16.h>
extern "C" __global__ void half2_polynomial(half2* out, const half2* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half2 half = __float2half2_rn(0.5f), v[4] = {x[i], x[i], x[i], x[i]};
    for (int j = 0; j < rounds; j++)
        #pragma unroll
        for (int c = 0; c < 4; c++) v[c] = __hfma2(v[c], half, __float2half2_rn(c));
    out[i] = __hadd2(__hadd2(v[0], v[1]), __hadd2(v[2], v[3]));
}
