// bank_128bit: float4, neighbours and every second
// launch: banks; grid 1; block 32
// args: out out float32[32,4] nan; stride int32 1
// launch: banks; grid 1; block 32
// args: out out float32[32,4] nan; stride int32 2
// expect: out = np.arange(31, -1, -1)[:, None] + np.array([0, 0.25, 0.5, 0.75])
extern "C" __global__ void banks(float4* out, int stride) {
    __shared__ float4 s[64];
    int t = threadIdx.x;
    s[t * stride] = make_float4(t, t + 0.25f, t + 0.5f, t + 0.75f);
    __syncthreads();
    out[t] = s[(31 - t) * stride];
}
