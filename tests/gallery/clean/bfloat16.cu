// bfloat16: products and sums of bfloat16, rounded once
// launch: multiply; grid 1; block 64
// args: out out float32[64] nan; in a float32[64] uniform; in b float32[64] uniform
#include <cuda_bf16.h>
extern "C" __global__ void multiply(float* out, const float* a, const float* b) {
    __nv_bfloat16 x = __float2bfloat16(a[threadIdx.x]), y = __float2bfloat16(b[threadIdx.x]);
    out[threadIdx.x] = __bfloat162float(__hmul(x, y));
}
