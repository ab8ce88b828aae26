// transpose_4_unrolled.cu: out (cols,rows) = transpose of in (rows,cols) through a shared-memory tile
// idea: 3_padded with TILE / ROWS elements a thread
//       fewer threads share the cost of index arithmetic, and a thread has several loads on the way at once
// launch: block (TILE, ROWS), grid (ceil(cols/TILE), ceil(rows/TILE)); any rows, cols
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef ROWS
#define ROWS 8
#endif
static_assert(TILE >= 1 && ROWS >= 1 && TILE * ROWS <= 1024, "a block holds 1 to 1024 threads: TILE x ROWS");
static_assert(TILE % ROWS == 0, "a thread moves TILE / ROWS elements: choose a ROWS that divides TILE");
using T = DTYPE;

extern "C" __global__ void transpose(const T* in, T* out, int rows, int cols)
{
    __shared__ T tile[TILE][TILE + 1];

    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    #pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (row + i < rows && col < cols)
            tile[threadIdx.y + i][threadIdx.x] = in[(row + i) * cols + col];
    __syncthreads();  // the tile is complete before anyone reads it

    // The tile's place in out: the block indices are exchanged, while threadIdx.x still runs along a row.
    int out_col = blockIdx.y * TILE + threadIdx.x;
    int out_row = blockIdx.x * TILE + threadIdx.y;
    #pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (out_row + i < cols && out_col < rows)
            out[(out_row + i) * rows + out_col] = tile[threadIdx.x][threadIdx.y + i];
}
