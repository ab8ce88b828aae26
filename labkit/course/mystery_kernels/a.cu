extern "C" __global__ void a(const float* in, float* out, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int col = 0; col < cols; ++col)
        sum += in[row * cols + col];
    out[row] = sum;
}
