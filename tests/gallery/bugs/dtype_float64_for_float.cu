// dtype_float64_for_float: an array of float64 where the kernel takes float*
// launch: scale; grid 1; block 32
// args: out out float32[32] nan; in in float64[32] uniform
// refused: float64
extern "C" __global__ void scale(float* out, const float* in) { out[threadIdx.x] = 2.0f * in[threadIdx.x]; }
