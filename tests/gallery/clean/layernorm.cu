// layernorm: a warp a row: mean, variance, normalised and scaled
// launch: layernorm; grid 2; block 32 4
// args: out out float32[7,50] nan; in in float32[7,50] normal; in gain float32[50] uniform; in bias float32[50] uniform; rows int32 7; n int32 50
__device__ float warp_sum(float value) {
    for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffff, value, mask);
    return value;
}

extern "C" __global__ void layernorm(float* out, const float* in, const float* gain, const float* bias, int rows, int n) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) sum += in[row * n + i];
    float mean = warp_sum(sum) / n;
    for (int i = threadIdx.x; i < n; i += 32) squares += (in[row * n + i] - mean) * (in[row * n + i] - mean);
    float scale = rsqrtf(warp_sum(squares) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 32) out[row * n + i] = (in[row * n + i] - mean) * scale * gain[i] + bias[i];
}
