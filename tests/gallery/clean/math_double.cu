// math_double: functions of the math library in double precision
// launch: functions; grid 1; block 32
// args: out out float64[5,32] nan; in in float64[32] uniform(-3,3)
extern "C" __global__ void functions(double* out, const double* in) {
    int t = threadIdx.x;
    double x = in[t], p = fabs(x) + 0.125;
    out[t] = exp(x);
    out[32 + t] = sin(x);
    out[64 + t] = sqrt(p);
    out[96 + t] = pow(p, x);
    out[128 + t] = 1.0 / p;
}
