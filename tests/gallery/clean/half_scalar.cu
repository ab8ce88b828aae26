// half_scalar: operators and conversions of half
// launch: halves; grid 1; block 64
// args: out out float16[64] nan; out wide float32[64] nan; in a float16[64] uniform; in b float16[64] uniform(1,2)
// expect: out = np.where(a < 0, a - b, a * b)
// expect: wide = (a.astype(float) + np.sqrt(b).astype(float), EPS16 * 2)
#include <cuda_fp16.h>
extern "C" __global__ void halves(half* out, float* wide, const half* a, const half* b) {
    int t = threadIdx.x;
    half x = a[t], y = b[t];
    out[t] = x < __float2half(0.0f) ? x - y : __hmul(x, y);
    wide[t] = __half2float(x) + __half2float(hsqrt(y));
}
