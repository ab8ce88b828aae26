// black_scholes: prices of options: exponentials, logarithms, a division, a polynomial
// kind: application
// set: held out
// launch: black_scholes; grid 4; block 128
// args: out calls float32[500] nan; in spot float32[500] uniform(5,30); in strike float32[500] uniform(5,30); in years float32[500] uniform(0.5,5); n int32 500
// launch: black_scholes; grid 8192; block 128
// args: out calls float32[1048576] nan; in spot float32[1048576] uniform(5,30); in strike float32[1048576] uniform(5,30); in years float32[1048576] uniform(0.5,5); n int32 1048576
// launch: black_scholes; grid 65536; block 128
// args: out calls float32[8388608] nan; in spot float32[8388608] uniform(5,30); in strike float32[8388608] uniform(5,30); in years float32[8388608] uniform(0.5,5); n int32 8388608
// launch: black_scholes; grid 524288; block 128
// args: out calls float32[67108864] nan; in spot float32[67108864] uniform(5,30); in strike float32[67108864] uniform(5,30); in years float32[67108864] uniform(0.5,5); n int32 67108864
// expect: calls = (lambda d, cdf: (spot * cdf(d) - strike * np.exp(-.02 * wide(years)) * cdf(d - .3 * np.sqrt(wide(years))), 1e-3))((np.log(wide(spot) / strike) + .065 * years) / (.3 * np.sqrt(wide(years))), np.vectorize(lambda d: .5 * math.erfc(-d / math.sqrt(2))))
extern "C" __global__ void black_scholes(float* calls, const float* spot, const float* strike, const float* years, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]), rate = 0.02f, spread = 0.3f * root;
    float d1 = (__logf(spot[i] / strike[i]) + (rate + 0.045f) * years[i]) / spread, d2 = d1 - spread;
    float both[2] = {d1, d2};
    #pragma unroll
    for (int j = 0; j < 2; j++) {
        float d = both[j], k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
        float tail = 0.39894228f * __expf(-0.5f * d * d) * k *
            (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
        both[j] = d > 0 ? 1 - tail : tail;
    }
    calls[i] = spot[i] * both[0] - strike[i] * __expf(-rate * years[i]) * both[1];
}
