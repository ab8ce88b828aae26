// bank_64bit: doubles, neighbours and a row of 32 apart
// launch: banks; grid 1; block 32
// args: out out float64[32] nan; stride int32 1
// launch: banks; grid 1; block 32
// args: out out float64[32] nan; stride int32 32
// expect: out = np.full(32, 31.0)
extern "C" __global__ void banks(double* out, int stride) {
    __shared__ double s[32 * 32];
    int t = threadIdx.x;
    s[t * stride] = t;
    __syncthreads();
    out[t] = s[(31 - t) * stride] + s[t * stride];
}
