// quantize_rows: rows to int8 by their largest magnitude, found by an atomic maximum of the bits of a float
// launch: quantize; grid 3; block 96
// args: out out int8[3,100] 0; out scale float32[3] nan; in in float32[3,100] normal; n int32 100
extern "C" __global__ void quantize(signed char* out, float* scale, const float* in, int n) {
    __shared__ int largest;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    float mine = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine = fmaxf(mine, fabsf(in[blockIdx.x * n + i]));
    atomicMax(&largest, __float_as_int(mine));
    __syncthreads();
    float s = __int_as_float(largest) / 127.0f;
    if (threadIdx.x == 0) scale[blockIdx.x] = s;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[blockIdx.x * n + i] = (signed char)max(-128, min(127, __float2int_rn(in[blockIdx.x * n + i] / s)));
}
