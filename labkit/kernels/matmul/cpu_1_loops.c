// matmul_cpu_1_loops.c: C (M,N) = A (M,K) B (K,N), row-major, as the formula says
// idea: an element of C is a row of A times a column of B
// limit: each step waits for the addition before it, and walks down a column of B: a cache line per step
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            T sum = 0;
            for (int k = 0; k < K; ++k)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
