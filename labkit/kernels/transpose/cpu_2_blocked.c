// transpose_cpu_2_blocked.c: out (cols,rows) = transpose of in (rows,cols), in blocks of BLOCK x BLOCK
// idea: the lines of a block stay in the cache until all their elements are written
// limit: one element at a time
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef BLOCK
#define BLOCK 16
#endif
_Static_assert(BLOCK >= 1, "choose BLOCK from 1");
typedef DTYPE T;

static int min(int a, int b) { return a < b ? a : b; }

void transpose(const T *restrict in, T *restrict out, int rows, int cols)
{
    for (int row0 = 0; row0 < rows; row0 += BLOCK)
        for (int col0 = 0; col0 < cols; col0 += BLOCK)
            for (int row = row0; row < min(row0 + BLOCK, rows); ++row)
                for (int col = col0; col < min(col0 + BLOCK, cols); ++col)
                    out[col * rows + row] = in[row * cols + col];
}
