// launch_bounds: a polynomial, with bounds on threads and blocks
// launch: polynomial; grid 2; block 128
// args: out out float32[256] nan; in in float32[256] uniform
extern "C" __global__ void __launch_bounds__(128, 4) polynomial(float* out, const float* in) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float x = in[i], y = 0.0f;
#pragma unroll
    for (int k = 8; k > 0; k--) y = y * x + 1.0f / k;
    out[i] = y;
}
