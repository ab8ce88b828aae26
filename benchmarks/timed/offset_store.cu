// offset_store: stores that begin some elements behind a line's start
// kind: offset
// set: held out
// launch: offset_store; grid 2; block 256
// args: out out float32[532] 7.0; in x float32[500] uniform; offset int32 3; n int32 500
// launch: offset_store; grid 16384; block 256
// args: out out float32[4194336] 7.0; in x float32[4194304] uniform; offset int32 3; n int32 4194304
// launch: offset_store; grid 262144; block 256
// args: out out float32[67108896] 7.0; in x float32[67108864] uniform; offset int32 3; n int32 67108864
// launch: offset_store; grid 262144; block 256
// args: out out float32[67108896] 7.0; in x float32[67108864] uniform; offset int32 8; n int32 67108864
// expect: out = np.r_[out[:offset], x, out[offset + n :]]
extern "C" __global__ void offset_store(float* out, const float* x, int offset, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i + offset] = x[i];
}
