// convolution_constant: 1-D convolution with a filter in constant memory
// launch: convolve; grid 3; block 96
// args: out out float32[250] nan; in in float32[250] uniform; n int32 250
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

extern "C" __global__ void convolve(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 5; k++) {
        int j = i + k - 2;
        if (j >= 0 && j < n) sum += weights[k] * in[j];
    }
    out[i] = sum;
}
