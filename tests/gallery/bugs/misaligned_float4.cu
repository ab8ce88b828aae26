// misaligned_float4: a float4 at a float's address
// launch: load; grid 1; block 8
// args: out out float32[32] nan; in in float32[40] uniform
extern "C" __global__ void load(float4* out, const float* in) {
    out[threadIdx.x] = *(const float4*)(in + 4 * threadIdx.x + 1);  // BUG memcheck misaligned
}
