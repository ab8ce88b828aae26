// dtype_float32_for_double: half as many bytes as the kernel takes
// launch: scale; grid 1; block 32
// args: out out float64[32] nan; in in float32[32] uniform
// refused: float32
extern "C" __global__ void scale(double* out, const double* in) {
    out[threadIdx.x] = 2.0 * in[threadIdx.x];  // BUG memcheck out of bounds
}
