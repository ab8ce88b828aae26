// conversions: between integers and floats, with rounding modes and bit patterns
// launch: convert; grid 1; block 64
// args: out out int32[7,64] -1; in in float32[64] uniform(-300,300)
extern "C" __global__ void convert(int* out, const float* in) {
    int t = threadIdx.x;
    float x = in[t];
    out[t] = (int)x;
    out[64 + t] = __float2int_rn(x);
    out[128 + t] = __float2int_ru(x) + 1000 * __float2int_rd(x);
    out[192 + t] = __float_as_int(x);
    out[256 + t] = (int)(unsigned char)(int)x + 1000 * (signed char)(int)x;
    out[320 + t] = (int)((double)x * 1e4) + (short)(int)(x * 1000.0f);
    out[384 + t] = __float_as_int(__int2float_rz(16777217 + t)) - (int)__double2float_rn(x * 3.0);
}
