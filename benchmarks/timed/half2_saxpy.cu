// half2_saxpy: y = a x + y for two half-precision numbers at a time
// kind: arithmetic
// set: build
// launch: half2_saxpy; grid 2; block 256
// args: out y float16[500,2] uniform; in x float16[500,2] uniform; a float32 0.5; n int32 500
// launch: half2_saxpy; grid 8192; block 256
// args: out y float16[2097152,2] uniform; in x float16[2097152,2] uniform; a float32 0.5; n int32 2097152
// launch: half2_saxpy; grid 131072; block 256
// args: out y float16[33554432,2] uniform; in x float16[33554432,2] uniform; a float32 0.5; n int32 33554432
// launch: half2_saxpy; grid 524288; block 256
// args: out y float16[134217728,2] uniform; in x float16[134217728,2] uniform; a float32 0.5; n int32 134217728
// expect: y = close(a * wide(x) + y, 3, 2, EPS16)
#include <cuda_fp16.h>
extern "C" __global__ void half2_saxpy(half2* y, const half2* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}
