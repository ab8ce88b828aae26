// null_pointer: a pointer of zero
// launch: copy; grid 1; block 32
// args: out out float32[32] nan; in uint64 0
extern "C" __global__ void copy(float* out, const float* in) {
    out[threadIdx.x] = in[threadIdx.x];  // BUG memcheck out of bounds
}
