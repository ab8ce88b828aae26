// ldg_restrict: reads through the read-only path
// launch: add; grid 2; block 64
// args: out out float32[100] nan; in a float32[100] uniform; in b float32[100] uniform; n int32 100
// expect: out = a * b
extern "C" __global__ void add(float* __restrict__ out, const float* __restrict__ a, const float* __restrict__ b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __ldg(&a[i]) * b[i];
}
