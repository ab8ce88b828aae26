// transpose_cpu_3_simd.c: out (cols,rows) = transpose of in (rows,cols), turned in registers, 8 x 8 at a time
// idea: read 8 vectors, turn them in registers, write 8 vectors
// limit: a vector is half a cache line, and the line may be gone before its other half comes
#include "cpu_turn.h"
#ifndef BLOCK
#define BLOCK 64 // elements of a row of a block: whole cache lines on both sides
#endif
_Static_assert(BLOCK % 8 == 0, "choose BLOCK from 8, 16, 24, ...");

static int min(int a, int b) { return a < b ? a : b; }

void transpose(const T *restrict in, T *restrict out, int rows, int cols)
{
    int rows8 = rows - rows % 8, cols8 = cols - cols % 8;
    for (int row0 = 0; row0 < rows8; row0 += BLOCK)
        for (int col0 = 0; col0 < cols8; col0 += BLOCK)
            for (int col = col0; col < min(col0 + BLOCK, cols8); col += 8)
                for (int row = row0; row < min(row0 + BLOCK, rows8); row += 8)
                    turn_8x8(&in[row * cols + col], cols, &out[col * rows + row], rows);
    for (int row = 0; row < rows; ++row) // what is left at the right and at the lower edge
        for (int col = row < rows8 ? cols8 : 0; col < cols; ++col)
            out[col * rows + row] = in[row * cols + col];
}
