// transpose_1_naive.cu: out (cols,rows) = transpose of in (rows,cols), straight from global memory
// idea: one thread an element; a warp reads along a row, so it writes down a column: rows elements apart
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
        out[col * rows + row] = in[row * cols + col];
}
