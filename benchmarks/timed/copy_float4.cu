// copy_float4: a copy, 16 bytes per thread
// kind: copy
// set: held out
// launch: copy_float4; grid 4; block 128
// args: out out float32[500,4] nan; in x float32[500,4] uniform; n int32 500
// launch: copy_float4; grid 8192; block 128
// args: out out float32[1048576,4] nan; in x float32[1048576,4] uniform; n int32 1048576
// launch: copy_float4; grid 32768; block 128
// args: out out float32[4194304,4] nan; in x float32[4194304,4] uniform; n int32 4194304
// launch: copy_float4; grid 327680; block 128
// args: out out float32[41943040,4] nan; in x float32[41943040,4] uniform; n int32 41943040
// expect: out = x
extern "C" __global__ void copy_float4(float4* out, const float4* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
