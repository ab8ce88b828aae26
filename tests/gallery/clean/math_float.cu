// math_float: functions of the math library in single precision
// launch: functions; grid 1; block 64
// args: out out float32[14,64] nan; in in float32[64] uniform(-3,3)
extern "C" __global__ void functions(float* out, const float* in) {
    int t = threadIdx.x;
    float x = in[t], p = fabsf(x) + 0.125f;
    out[t] = expf(x);
    out[64 + t] = logf(p);
    out[128 + t] = sinf(x);
    out[192 + t] = cosf(x);
    out[256 + t] = tanf(0.4f * x);
    out[320 + t] = sqrtf(p);
    out[384 + t] = rsqrtf(p);
    out[448 + t] = powf(p, x);
    out[512 + t] = tanhf(x);
    out[576 + t] = atan2f(x, p);
    out[640 + t] = erff(x);
    out[704 + t] = floorf(x) + 10 * ceilf(x) + 100 * truncf(x) + 1000 * rintf(x);
    out[768 + t] = fmodf(x, 0.75f);
    out[832 + t] = x / p;
}
