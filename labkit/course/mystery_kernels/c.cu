extern "C" __global__ void c(const float* in, float* out, int rounds, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int start = 0; start < 4; ++start) {
        float v = in[i] + start;
        for (int k = 0; k < rounds; ++k)
            v = v * 0.999f + 0.001f;
        sum += v;
    }
    out[i] = sum;
}
