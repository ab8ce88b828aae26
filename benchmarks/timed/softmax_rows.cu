// softmax_rows: softmax, one block per row, three passes over the row
// kind: row norms
// set: build
// launch: softmax_rows; grid 3; block 128
// args: out out float32[3,300] nan; in x float32[3,300] uniform; cols int32 300
// launch: softmax_rows; grid 1024; block 256
// args: out out float32[1024,1024] nan; in x float32[1024,1024] uniform; cols int32 1024
// launch: softmax_rows; grid 8192; block 256
// args: out out float32[8192,4096] nan; in x float32[8192,4096] uniform; cols int32 4096
// launch: softmax_rows; grid 32768; block 128
// args: out out float32[32768,256] nan; in x float32[32768,256] uniform; cols int32 256
// expect: out = close(np.exp(wide(x)) / np.exp(wide(x)).sum(1, keepdims=True), 400)
__device__ float of_block(float value, bool most) {
    __shared__ float s[256];
    s[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) {
            float other = s[threadIdx.x + half];
            s[threadIdx.x] = most ? fmaxf(s[threadIdx.x], other) : s[threadIdx.x] + other;
        }
        __syncthreads();
    }
    value = s[0];
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax_rows(float* out, const float* x, int cols) {
    const float* row = x + blockIdx.x * cols;
    float most = -1e30f, sum = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) most = fmaxf(most, row[c]);
    most = of_block(most, true);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += __expf(row[c] - most);
    sum = of_block(sum, false);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) out[blockIdx.x * cols + c] = __expf(row[c] - most) / sum;
}
