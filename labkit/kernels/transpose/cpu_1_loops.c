// transpose_cpu_1_loops.c: out (cols,rows) = transpose of in (rows,cols)
// idea: read along the rows; what is written goes down a column
// limit: each write touches another cache line, and the line is gone before its next element comes
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

void transpose(const T *restrict in, T *restrict out, int rows, int cols)
{
    for (int row = 0; row < rows; ++row)
        for (int col = 0; col < cols; ++col)
            out[col * rows + row] = in[row * cols + col];
}
