// haar_wavelet: all levels of a Haar transform of a row in one block
// launch: haar; grid 2; block 32; shared 256
// args: out out float32[2,64] nan; in in float32[2,64] uniform
extern "C" __global__ void haar(float* out, const float* in) {
    extern __shared__ float data[];
    const int n = 2 * blockDim.x, t = threadIdx.x;
    in += blockIdx.x * n, out += blockIdx.x * n;
    data[t] = in[t], data[t + blockDim.x] = in[t + blockDim.x];
    for (int half = blockDim.x; half >= 1; half >>= 1) {
        __syncthreads();
        float a = 0, b = 0;
        if (t < half) a = data[2 * t], b = data[2 * t + 1];
        __syncthreads();
        if (t < half) {
            out[half + t] = (a - b) * 0.70710678f;
            data[t] = (a + b) * 0.70710678f;
        }
    }
    if (t == 0) out[0] = data[0];
}
