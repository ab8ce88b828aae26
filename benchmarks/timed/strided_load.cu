// strided_load: loads a stride apart
// kind: strided
// set: build
// launch: strided_load; grid 2; block 256
// args: out out float32[500] nan; in x float32[1500] uniform; stride int32 3; n int32 500
// launch: strided_load; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[33554432] uniform; stride int32 2; n int32 16777216
// launch: strided_load; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[67108864] uniform; stride int32 4; n int32 16777216
// launch: strided_load; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[67108864] uniform; stride int32 8; n int32 8388608
// launch: strided_load; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[268435456] uniform; stride int32 32; n int32 8388608
// launch: strided_load; grid 1024; block 256
// args: out out float32[262144] nan; in x float32[4194304] uniform; stride int32 16; n int32 262144
// expect: out = x[::stride]
extern "C" __global__ void strided_load(float* out, const float* x, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i * stride];
}
