// offset_load: loads that begin some elements behind a line's start
// kind: offset
// set: build
// launch: offset_load; grid 2; block 256
// args: out out float32[500] nan; in x float32[532] uniform; offset int32 1; n int32 500
// launch: offset_load; grid 16384; block 256
// args: out out float32[4194304] nan; in x float32[4194336] uniform; offset int32 1; n int32 4194304
// launch: offset_load; grid 262144; block 256
// args: out out float32[67108864] nan; in x float32[67108896] uniform; offset int32 1; n int32 67108864
// launch: offset_load; grid 262144; block 256
// args: out out float32[67108864] nan; in x float32[67108896] uniform; offset int32 17; n int32 67108864
// expect: out = x[offset : offset + n]
extern "C" __global__ void offset_load(float* out, const float* x, int offset, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i + offset];
}
