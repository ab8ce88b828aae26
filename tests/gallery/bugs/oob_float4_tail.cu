// oob_float4_tail: 30 floats are no whole number of float4
// launch: scale; grid 1; block 8
// args: out out float32[32] nan; in in float32[30] uniform
extern "C" __global__ void scale(float4* out, const float4* in) {
    float4 v = in[threadIdx.x];  // BUG memcheck out of bounds
    out[threadIdx.x] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}
