// oob_read_by_one: the last thread reads the element behind the end
// launch: difference; grid 2; block 64
// args: out out float32[128] nan; in in float32[128] uniform; n int32 128
extern "C" __global__ void difference(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 1] - 1.0f;  // BUG memcheck out of bounds
}
