// copy_float2_grid_stride: a copy in a grid-stride loop, 8 bytes per step
// kind: copy
// set: build
// launch: copy_float2_grid_stride; grid 3; block 64
// args: out out float32[700,2] nan; in x float32[700,2] uniform; n int32 700
// launch: copy_float2_grid_stride; grid 264; block 256
// args: out out float32[2097152,2] nan; in x float32[2097152,2] uniform; n int32 2097152
// launch: copy_float2_grid_stride; grid 1056; block 256
// args: out out float32[33554432,2] nan; in x float32[33554432,2] uniform; n int32 33554432
// launch: copy_float2_grid_stride; grid 132; block 512
// args: out out float32[16777216,2] nan; in x float32[16777216,2] uniform; n int32 16777216
// expect: out = x
extern "C" __global__ void copy_float2_grid_stride(float2* out, const float2* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i];
}
