// refused_float_for_int: the length is a float
// launch: fill; grid 1; block 32
// args: out out int32[32] -1; n float32 32
// refused: float32; the kernel takes an integer
extern "C" __global__ void fill(int* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = 1;
}
