// rmsnorm_rows: RMS norm with weights, one block of 256 threads per row, two passes
// kind: row norms
// set: build
// launch: rmsnorm_rows; grid 3; block 256
// args: out out float32[3,600] nan; in x float32[3,600] uniform; in weights float32[600] uniform; cols int32 600
// launch: rmsnorm_rows; grid 512; block 256
// args: out out float32[512,4096] nan; in x float32[512,4096] uniform; in weights float32[4096] uniform; cols int32 4096
// launch: rmsnorm_rows; grid 4096; block 256
// args: out out float32[4096,8192] nan; in x float32[4096,8192] uniform; in weights float32[8192] uniform; cols int32 8192
// launch: rmsnorm_rows; grid 65536; block 256
// args: out out float32[65536,1024] nan; in x float32[65536,1024] uniform; in weights float32[1024] uniform; cols int32 1024
// expect: out = close(weights * wide(x) / np.sqrt((wide(x) ** 2).mean(1, keepdims=True) + 1e-5), 700)
extern "C" __global__ void rmsnorm_rows(float* out, const float* x, const float* weights, int cols) {
    __shared__ float parts[8];
    const float* row = x + blockIdx.x * cols;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += 256) sum += row[c] * row[c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < 8; w++) sum += parts[w];
    float scale = rsqrtf(sum / cols + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 256) out[blockIdx.x * cols + c] = row[c] * scale * weights[c];
}
