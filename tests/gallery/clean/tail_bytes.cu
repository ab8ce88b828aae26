// tail_bytes: sixteen bytes at a time, the rest one by one
// launch: invert; grid 1; block 32
// args: out out uint8[103] 0; in in uint8[103] integers(0,256); n int32 103
extern "C" __global__ void invert(unsigned char* out, const unsigned char* in, int n) {
#pragma unroll 1
    for (int i = threadIdx.x; i < n / 16; i += 32) {
        uint4 v = ((const uint4*)in)[i];
        ((uint4*)out)[i] = make_uint4(~v.x, ~v.y, ~v.z, ~v.w);
    }
#pragma unroll 1
    for (int i = n / 16 * 16 + threadIdx.x; i < n; i += 32) out[i] = ~in[i];
}
