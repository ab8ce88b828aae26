// oob_missing_guard: the grid covers 384 threads, the arrays hold 300
// launch: add; grid 3; block 128
// args: out out float32[300] nan; in a float32[384] uniform; in b float32[384] uniform
extern "C" __global__ void add(float* out, const float* a, const float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i];  // BUG memcheck out of bounds
}
