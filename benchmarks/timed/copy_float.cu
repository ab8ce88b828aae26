// copy_float: a copy, one float per thread
// kind: copy
// set: build
// launch: copy_float; grid 4; block 256
// args: out out float32[1000] nan; in x float32[1000] uniform; n int32 1000
// launch: copy_float; grid 3072; block 256
// args: out out float32[786432] nan; in x float32[786432] uniform; n int32 786432
// launch: copy_float; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; n int32 16777216
// launch: copy_float; grid 524288; block 256
// args: out out float32[134217728] nan; in x float32[134217728] uniform; n int32 134217728
// expect: out = x
extern "C" __global__ void copy_float(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
