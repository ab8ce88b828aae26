// layernorm_rows: layer norm, one warp per row, the row kept in registers
// kind: row norms
// set: held out
// launch: layernorm_rows; grid 2; block 128
// args: out out float32[6,512] nan; in x float32[6,512] uniform; rows int32 6
// launch: layernorm_rows; grid 1024; block 128
// args: out out float32[4096,512] nan; in x float32[4096,512] uniform; rows int32 4096
// launch: layernorm_rows; grid 8192; block 128
// args: out out float32[32768,512] nan; in x float32[32768,512] uniform; rows int32 32768
// launch: layernorm_rows; grid 65536; block 128
// args: out out float32[262144,512] nan; in x float32[262144,512] uniform; rows int32 262144
// expect: out = close((wide(x) - wide(x).mean(1, keepdims=True)) / np.sqrt(wide(x).var(1, keepdims=True) + 1e-5), 600, 2)
extern "C" __global__ void layernorm_rows(float* out, const float* x, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float part[16], sum = 0, squares = 0;
    #pragma unroll
    for (int j = 0; j < 16; j++) sum += part[j] = x[row * 512 + j * 32 + lane];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    float mean = sum / 512;
    #pragma unroll
    for (int j = 0; j < 16; j++) squares += (part[j] - mean) * (part[j] - mean);
    for (int step = 16; step; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
    float scale = rsqrtf(squares / 512 + 1e-5f);
    #pragma unroll
    for (int j = 0; j < 16; j++) out[row * 512 + j * 32 + lane] = (part[j] - mean) * scale;
}
