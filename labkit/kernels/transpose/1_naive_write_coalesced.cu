// transpose_1_naive_write_coalesced.cu: out (cols,rows) = transpose of in (rows,cols), from global memory
// idea: 1_naive with threadIdx.x and threadIdx.y exchanged: a warp writes along a row, so it reads down a
//       column: 32 sectors for 32 elements, as many as 1_naive writes
// launch: block (TILE, TILE), grid (ceil(cols/TILE), ceil(rows/TILE)); any rows, cols; square blocks
#ifndef DTYPE
#define DTYPE float
#endif
using T = DTYPE;

extern "C" __global__ void transpose(const T* in, T* out, int rows, int cols)
{
    int col = blockIdx.x * blockDim.x + threadIdx.y;
    int row = blockIdx.y * blockDim.y + threadIdx.x;
    if (row < rows && col < cols)
        out[col * rows + row] = in[row * cols + col];
}
