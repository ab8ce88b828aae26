// transpose_cpu_0_copy.c: out = in (rows,cols), a copy: the ceiling of every transpose
// idea: a transpose reads and writes each element once, and so does a copy, in the best of orders: four parts
//       at the same time, as the memory fetches ahead in several places better than in one
#include "cpu_stream.h"
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

void transpose(const T *restrict in, T *restrict out, int rows, int cols)
{
    const char *from = (const char *)in;
    char *to = (char *)out;
    size_t bytes = (size_t)rows * cols * sizeof(T), part = bytes / 4 / LINE * LINE;
    for (size_t at = 0; at < part; at += LINE)
        for (int p = 0; p < 4; ++p)
            stream(to + p * part + at, from + p * part + at, LINE);
    memcpy(to + 4 * part, from + 4 * part, bytes - 4 * part);
}
