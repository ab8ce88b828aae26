// matmul_cpu_6_register_tile.c: C (M,N) = A (M,K) B (K,N), row-major, in tiles that fit the registers
// idea: a tile of C of 6 rows and 2 or 4 vectors has enough independent sums to keep the FMA units busy
// limit: rows of B lie N elements apart: each is on another page, and they compete for few places in the cache
#include "cpu_micro_kernel.h"
#ifndef KC
#define KC 256 // rows of B that a tile runs over: KC x NR elements stay in the cache for all rows of C
#endif

// What is left at the right and lower edge, with plain loops.
static void edge(const T *A, const T *B, T *C, int i0, int i1, int j0, int j1, int k0, int k1, int N, int K)
{
    for (int i = i0; i < i1; ++i)
        for (int k = k0; k < k1; ++k)
            for (int j = j0; j < j1; ++j)
                C[i * N + j] = (k == 0 ? 0 : C[i * N + j]) + A[i * K + k] * B[k * N + j];
}

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    int M1 = M - M % MR, N1 = N - N % NR; // whole tiles
    for (int k = 0; k < K; k += KC) {
        int kc = min(KC, K - k);
        for (int j = 0; j < N1; j += NR)
            for (int i = 0; i < M1; i += MR)
                micro_kernel(kc, &A[i * K + k], K, 1, &B[k * N + j], N, &C[i * N + j], N, MR, NR, k > 0,
                             B, 0);
        edge(A, B, C, 0, M1, N1, N, k, k + kc, N, K);
        edge(A, B, C, M1, M, 0, N, k, k + kc, N, K);
    }
}
