// black_scholes: prices of European options, two per thread through float2, fast intrinsics
// launch: prices; grid 1; block 64
// args: out call float32[100] nan; out put float32[100] nan; in price float32[100] uniform(5,30); in strike float32[100] uniform(1,100); in years float32[100] uniform(0.25,10); riskless float32 0.02; volatility float32 0.3; pairs int32 50
__device__ inline float cnd(float d) {
    const float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
    float tail = 0.39894228f * __expf(-0.5f * d * d) *
                 (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - tail : tail;
}

__device__ inline void body(float& call, float& put, float S, float X, float T, float R, float V) {
    float root = __fdividef(1.0F, rsqrtf(T));
    float d1 = __fdividef(__logf(S / X) + (R + 0.5f * V * V) * T, V * root), d2 = d1 - V * root;
    float c1 = cnd(d1), c2 = cnd(d2), discount = __expf(-R * T);
    call = S * c1 - X * discount * c2;
    put = X * discount * (1.0f - c2) - S * (1.0f - c1);
}

extern "C" __launch_bounds__(128) __global__
void prices(float2* __restrict call, float2* __restrict put, float2* __restrict price, float2* __restrict strike,
            float2* __restrict years, float riskless, float volatility, int pairs) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < pairs) {
        float c1, c2, p1, p2;
        body(c1, p1, price[i].x, strike[i].x, years[i].x, riskless, volatility);
        body(c2, p2, price[i].y, strike[i].y, years[i].y, riskless, volatility);
        call[i] = make_float2(c1, c2);
        put[i] = make_float2(p1, p2);
    }
}
