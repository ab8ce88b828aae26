// transpose_0_copy.cu: out = in, both (rows,cols): no transpose, but as many bytes to read and write
// idea: no transpose of one element a thread is faster; with more loads on the way a thread, a copy is too
// launch: block (TILE, TILE), grid (ceil(cols/TILE), ceil(rows/TILE)); any rows, cols
#ifndef DTYPE
#define DTYPE float
#endif
using T = DTYPE;

extern "C" __global__ void transpose(const T* in, T* out, int rows, int cols)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols)
        out[row * cols + col] = in[row * cols + col];
}
