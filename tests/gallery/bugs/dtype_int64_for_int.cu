// dtype_int64_for_int: NumPy's own integers, of 64 bits, where the kernel takes int*
// launch: scale; grid 1; block 32
// args: out out int32[32] -1; in in int64[32] arange
// refused: int64
extern "C" __global__ void scale(int* out, const int* in) { out[threadIdx.x] = 2 * in[threadIdx.x]; }
