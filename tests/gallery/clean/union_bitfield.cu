// union_bitfield: the parts of a float through a union and a structure of bit fields
// launch: parts; grid 1; block 64
// args: out out int32[64,3] -1; in in float32[64] uniform(-1000,1000)
union Number {
    float value;
    struct {
        unsigned mantissa : 23, exponent : 8, sign : 1;
    } bits;
};

extern "C" __global__ void parts(int* out, const float* in) {
    Number number;
    number.value = in[threadIdx.x];
    out[3 * threadIdx.x] = number.bits.sign;
    out[3 * threadIdx.x + 1] = (int)number.bits.exponent - 127;
    out[3 * threadIdx.x + 2] = number.bits.mantissa;
}
