// half2_arithmetic: two halves at a time: fused multiply-add, sum and comparison
// launch: halves; grid 1; block 64
// args: out out float16[3,128] nan; in a float16[128] uniform; in b float16[128] uniform
#include <cuda_fp16.h>
extern "C" __global__ void halves(half2* out, const half2* a, const half2* b) {
    int t = threadIdx.x;
    half2 x = a[t], y = b[t];
    out[t] = __hfma2(x, y, __float2half2_rn(1.0f));
    out[64 + t] = __hadd2(x, __hmul2(y, y));
    out[128 + t] = __hgt2(x, y);
}
