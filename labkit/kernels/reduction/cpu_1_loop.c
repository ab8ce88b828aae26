// reduction_cpu_1_loop.c: out += sum of x (n)
// idea: one sum, to which each element is added in turn
// limit: an addition waits for the one before, some four cycles each
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

void reduction(const T *restrict x, T *restrict out, int n)
{
    T sum = 0;
    for (int i = 0; i < n; ++i)
        sum += x[i];
    *out += sum;
}
