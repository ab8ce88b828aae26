// reduction_cpu_2_independent_sums.c: out += sum of x (n)
// idea: SUMS sums, none of which waits for another: several additions are under way at the same time
// limit: one element per addition
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef SUMS
#define SUMS 8
#endif
_Static_assert(SUMS >= 1 && SUMS <= 64, "choose SUMS from 1 to 64");
typedef DTYPE T;

void reduction(const T *restrict x, T *restrict out, int n)
{
    T sum[SUMS] = {0}, total = 0;
    int whole = n - n % SUMS;
    for (int i = 0; i < whole; i += SUMS)
#pragma GCC unroll 64
        for (int s = 0; s < SUMS; ++s)
            sum[s] += x[i + s];
    for (int i = whole; i < n; ++i)
        total += x[i];
    for (int s = 0; s < SUMS; ++s)
        total += sum[s];
    *out += total;
}
