// stencil_1d: mean of three neighbours, ends copied
// launch: stencil; grid 4; block 64
// args: out out float32[200] nan; in in float32[200] uniform; n int32 200
extern "C" __global__ void stencil(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = i == 0 || i == n - 1 ? in[i] : (in[i - 1] + in[i] + in[i + 1]) / 3.0f;
}
