// transpose_cpu_4_streamed.c: out (cols,rows) = transpose of in (rows,cols), through a small buffer
// idea: turn a block into a buffer that stays in the nearest cache, then write each of its rows at once, whole
//       cache lines straight to memory. A GPU's kernel does the same with a tile in shared memory
#include "cpu_stream.h"
#include "cpu_turn.h"
#ifndef BLOCK
#define BLOCK 32
#endif
_Static_assert(BLOCK >= 8 && BLOCK % 8 == 0, "choose BLOCK from 8, 16, 24, ...");

void transpose(const T *restrict in, T *restrict out, int rows, int cols)
{
    // Its rows lie one line further apart than they are long. At a power of two they would compete for the same
    // places of the cache, as the columns of a tile in shared memory do for its banks.
    enum { ROW = BLOCK + LINE / sizeof(T) };
    T tile[BLOCK][ROW] __attribute__((aligned(LINE)));
    int whole_rows = rows - rows % BLOCK, whole_cols = cols - cols % BLOCK;
    for (int row0 = 0; row0 < whole_rows; row0 += BLOCK)
        for (int col0 = 0; col0 < whole_cols; col0 += BLOCK) {
            for (int row = 0; row < BLOCK; row += 8)
                for (int col = 0; col < BLOCK; col += 8)
                    turn_8x8(&in[(row0 + row) * cols + col0 + col], cols, &tile[col][row], ROW);
            for (int col = 0; col < BLOCK; ++col)
                stream(&out[(col0 + col) * rows + row0], tile[col], BLOCK * sizeof(T));
        }
    for (int row = 0; row < rows; ++row) // what is left at the right and at the lower edge
        for (int col = row < whole_rows ? whole_cols : 0; col < cols; ++col)
            out[col * rows + row] = in[row * cols + col];
}
