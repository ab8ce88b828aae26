// transpose_float4: each thread turns 4 x 4 elements in registers
// launch: transpose; grid 2 2; block 8 8
// args: out out float32[64,64] nan; in in float32[64,64] uniform; n int32 64
extern "C" __global__ void transpose(float* out, const float* in, int n) {
    int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = 4 * (blockIdx.y * blockDim.y + threadIdx.y);
    float4 a = *(const float4*)&in[y * n + x], b = *(const float4*)&in[(y + 1) * n + x];
    float4 c = *(const float4*)&in[(y + 2) * n + x], d = *(const float4*)&in[(y + 3) * n + x];
    *(float4*)&out[x * n + y] = make_float4(a.x, b.x, c.x, d.x);
    *(float4*)&out[(x + 1) * n + y] = make_float4(a.y, b.y, c.y, d.y);
    *(float4*)&out[(x + 2) * n + y] = make_float4(a.z, b.z, c.z, d.z);
    *(float4*)&out[(x + 3) * n + y] = make_float4(a.w, b.w, c.w, d.w);
}
