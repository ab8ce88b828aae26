// strided_store: stores a stride apart: the sectors between are left as they are
// kind: strided
// set: held out
// launch: strided_store; grid 2; block 256
// args: out out float32[1500] 7.0; in x float32[500] uniform; stride int32 3; n int32 500
// launch: strided_store; grid 65536; block 256
// args: out out float32[33554432] 7.0; in x float32[16777216] uniform; stride int32 2; n int32 16777216
// launch: strided_store; grid 32768; block 256
// args: out out float32[33554432] 7.0; in x float32[8388608] uniform; stride int32 4; n int32 8388608
// launch: strided_store; grid 16384; block 256
// args: out out float32[67108864] 7.0; in x float32[4194304] uniform; stride int32 16; n int32 4194304
// launch: strided_store; grid 32768; block 256
// args: out out float32[268435456] 7.0; in x float32[8388608] uniform; stride int32 32; n int32 8388608
// launch: strided_store; grid 2048; block 256
// args: out out float32[4194304] 7.0; in x float32[524288] uniform; stride int32 8; n int32 524288
// expect: out = np.where(np.arange(len(out)) % stride, 7, np.repeat(x, stride))
extern "C" __global__ void strided_store(float* out, const float* x, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i * stride] = x[i];
}
