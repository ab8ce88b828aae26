// vector_add: out = a + b, one thread an element
// launch: vector_add; grid 3; block 128
// args: out out float32[300] nan; in a float32[300] uniform; in b float32[300] uniform; n int32 300
// launch: vector_add; grid 4; block 100
// launch: vector_add; grid 10; block 33
// expect: out = a + b
extern "C" __global__ void vector_add(float* out, const float* a, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
