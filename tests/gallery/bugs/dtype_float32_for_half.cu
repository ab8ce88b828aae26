// dtype_float32_for_half: floats where the kernel takes half*
// launch: widen; grid 1; block 32
// args: out out float32[32] nan; in in float32[32] uniform
// refused: float32
#include <cuda_fp16.h>
extern "C" __global__ void widen(float* out, const half* in) { out[threadIdx.x] = __half2float(in[threadIdx.x]); }
