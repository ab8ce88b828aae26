// triad_float4: out = a + s b, 16 bytes per access
// kind: stream
// set: held out
// launch: triad_float4; grid 2; block 256
// args: out out float32[500,4] nan; in a float32[500,4] uniform; in b float32[500,4] uniform; s float32 0.5; n int32 500
// launch: triad_float4; grid 4096; block 256
// args: out out float32[1048576,4] nan; in a float32[1048576,4] uniform; in b float32[1048576,4] uniform; s float32 0.5; n int32 1048576
// launch: triad_float4; grid 16384; block 256
// args: out out float32[4194304,4] nan; in a float32[4194304,4] uniform; in b float32[4194304,4] uniform; s float32 0.5; n int32 4194304
// launch: triad_float4; grid 131072; block 256
// args: out out float32[33554432,4] nan; in a float32[33554432,4] uniform; in b float32[33554432,4] uniform; s float32 0.5; n int32 33554432
// expect: out = close(wide(a) + s * b, 2, 2)
extern "C" __global__ void triad_float4(float4* out, const float4* a, const float4* b, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 u = a[i], v = b[i];
    out[i] = make_float4(u.x + s * v.x, u.y + s * v.y, u.z + s * v.z, u.w + s * v.w);
}
