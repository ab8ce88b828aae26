// layernorm_backward: gradients of a layer norm; those of gain and bias are gathered in shared memory, then by atomics
// launch: backward; grid 2; block 64; shared 400
// args: out dx float32[6,50] 0; out dgain float32[50] 0; out dbias float32[50] 0; in dy float32[6,50] normal; in x float32[6,50] normal; in gain float32[50] uniform; rows int32 6; n int32 50
__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
    return value;
}

extern "C" __global__ void backward(float* dx, float* dgain, float* dbias, const float* dy, const float* x,
                                    const float* gain, int rows, int n) {
    extern __shared__ float shared[];
    float* s_gain = shared;
    float* s_bias = shared + n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s_gain[i] = s_bias[i] = 0.0f;
    __syncthreads();
    int lane = threadIdx.x % warpSize, warps = gridDim.x * (blockDim.x / warpSize);
    for (int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize; row < rows; row += warps) {
        const float *x_row = x + row * n, *dy_row = dy + row * n;
        float sum = 0.0f, squares = 0.0f;
        for (int i = lane; i < n; i += warpSize) sum += x_row[i];
        float mean = warp_sum(sum) / n;
        for (int i = lane; i < n; i += warpSize) squares += (x_row[i] - mean) * (x_row[i] - mean);
        float rstd = rsqrtf(warp_sum(squares) / n + 1e-5f);
        float dnorm_mean = 0.0f, dnorm_norm_mean = 0.0f;
        for (int i = lane; i < n; i += warpSize) {
            float norm = (x_row[i] - mean) * rstd, dnorm = gain[i] * dy_row[i];
            dnorm_mean += dnorm;
            dnorm_norm_mean += dnorm * norm;
        }
        dnorm_mean = warp_sum(dnorm_mean) / n;
        dnorm_norm_mean = warp_sum(dnorm_norm_mean) / n;
        for (int i = lane; i < n; i += warpSize) {
            float norm = (x_row[i] - mean) * rstd;
            atomicAdd(&s_bias[i], dy_row[i]);
            atomicAdd(&s_gain[i], norm * dy_row[i]);
            dx[row * n + i] += (gain[i] * dy_row[i] - dnorm_mean - norm * dnorm_norm_mean) * rstd;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(&dgain[i], s_gain[i]);
        atomicAdd(&dbias[i], s_bias[i]);
    }
}
