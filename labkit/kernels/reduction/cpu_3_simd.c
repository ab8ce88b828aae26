// reduction_cpu_3_simd.c: out += sum of x (n)
// idea: independent sums of whole vectors: one addition takes 64 bytes, and the memory is what limits
#include <string.h>
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef SUMS
#define SUMS 8
#endif
_Static_assert(SUMS >= 1 && SUMS <= 16, "vectors must fit the registers: choose SUMS from 1 to 16");
typedef DTYPE T;
enum { BYTES = 64, WIDTH = BYTES / sizeof(T) };
typedef T vec __attribute__((vector_size(BYTES)));

void reduction(const T *restrict x, T *restrict out, int n)
{
    vec sum[SUMS] = {0};
    T total = 0;
    int whole = n - n % (SUMS * WIDTH);
    for (int i = 0; i < whole; i += SUMS * WIDTH)
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; ++s) {
            vec next;
            memcpy(&next, &x[i + s * WIDTH], BYTES); // at any address
            sum[s] += next;
        }
    for (int i = whole; i < n; ++i)
        total += x[i];
    for (int s = 0; s < SUMS; ++s)
        for (int v = 0; v < WIDTH; ++v)
            total += sum[s][v];
    *out += total;
}
