// vector_float2: product of complex numbers
// launch: multiply; grid 2; block 48
// args: out out float32[80,2] nan; in a float32[80,2] uniform; in b float32[80,2] uniform; n int32 80
extern "C" __global__ void multiply(float2* out, const float2* a, const float2* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 u = a[i], v = b[i];
    out[i] = make_float2(u.x * v.x - u.y * v.y, u.x * v.y + u.y * v.x);
}
