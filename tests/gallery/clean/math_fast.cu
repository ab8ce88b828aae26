// math_fast: the fast forms of functions, with their larger errors
// launch: functions; grid 1; block 64
// args: out out float32[8,64] nan; in in float32[64] uniform(-3,3)
extern "C" __global__ void functions(float* out, const float* in) {
    int t = threadIdx.x;
    float x = in[t], p = fabsf(x) + 0.125f;
    out[t] = __expf(x);
    out[64 + t] = __logf(p);
    out[128 + t] = __sinf(x);
    out[192 + t] = __cosf(x);
    out[256 + t] = __fdividef(x, p);
    out[320 + t] = __powf(p, x);
    out[384 + t] = __frcp_rn(p);
    out[448 + t] = __fsqrt_rn(p) + __fmaf_rn(x, p, x) + __saturatef(x);
}
