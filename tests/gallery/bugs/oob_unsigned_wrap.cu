// oob_unsigned_wrap: 0u - 1 is the largest unsigned number
// launch: difference; grid 1; block 64
// args: out out float32[64] nan; in in float32[64] uniform; n uint32 64
extern "C" __global__ void difference(float* out, const float* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned left = i - 1;
    if (i < n) out[i] = in[left];  // BUG memcheck out of bounds
}
