extern "C" __global__ void d(const float* in, float* out)
{
    __shared__ float tile[32][32];
    int lane = threadIdx.x, first = threadIdx.y, start = blockIdx.x * 1024;
    for (int row = first; row < 32; row += 8)
        tile[row][lane] = in[start + row * 32 + lane];
    __syncthreads();
    for (int col = first; col < 32; col += 8) {
        float sum = tile[lane][col];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(~0u, sum, step);
        tile[lane][col] *= sum;
    }
    __syncthreads();
    for (int row = first; row < 32; row += 8)
        out[start + row * 32 + lane] = tile[row][lane];
}
