extern "C" __global__ void f(const float* in, float* out, int rounds, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = in[i];
    if (i % 2)
        for (int k = 0; k < rounds; ++k)
            v = v * 0.999f + 0.001f;
    else
        for (int k = 0; k < rounds; ++k)
            v = v * 1.001f + 0.001f;
    out[i] = v;
}
