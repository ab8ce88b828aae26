// matmul_cpu_2_loop_order.c: C (M,N) = A (M,K) B (K,N), row-major, with the two inner loops exchanged
// idea: the inner loop goes along rows of B and C, so memory is read in order, and the compiler can use SIMD
// limit: each multiply-add loads and stores an element of C, and each row of C reads all of B
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    for (int i = 0; i < M; ++i) {
        for (int j = 0; j < N; ++j)
            C[i * N + j] = 0;
        for (int k = 0; k < K; ++k)
            for (int j = 0; j < N; ++j)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
