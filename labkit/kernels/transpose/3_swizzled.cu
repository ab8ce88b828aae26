// transpose_3_swizzled.cu: out (cols,rows) = transpose of in (rows,cols) through a shared-memory tile
// idea: 3_padded without the unused column: row y keeps its element x in column x ^ y (bitwise exclusive or)
//       with TILE 32 the elements of a column are again in 32 different banks, and no shared memory is lost
// launch: block (TILE, TILE), grid (ceil(cols/TILE), ceil(rows/TILE)); any rows, cols
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 32
#endif
static_assert(TILE >= 1 && TILE * TILE <= 1024, "a block of TILE x TILE threads: choose TILE from 1 to 32");
static_assert((TILE & (TILE - 1)) == 0, "x ^ y must stay below TILE: choose a power of 2");
using T = DTYPE;

extern "C" __global__ void transpose(const T* in, T* out, int rows, int cols)
{
    __shared__ T tile[TILE][TILE];

    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols)
        tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[row * cols + col];
    __syncthreads();  // the tile is complete before anyone reads it

    // The tile's place in out: the block indices are exchanged, while threadIdx.x still runs along a row.
    int out_col = blockIdx.y * TILE + threadIdx.x;
    int out_row = blockIdx.x * TILE + threadIdx.y;
    if (out_row < cols && out_col < rows)
        out[out_row * rows + out_col] = tile[threadIdx.x][threadIdx.y ^ threadIdx.x];
}
