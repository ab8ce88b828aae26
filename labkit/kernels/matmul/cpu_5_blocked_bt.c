// matmul_cpu_5_blocked_bt.c: C (M,N) = A (M,K) B (K,N), row-major, in blocks, with B transposed first
// idea: down a column of B is along a row of its transpose, so that memory is read in order
// limit: 8 neighbours in a row of C now need 8 numbers from 8 rows of the transpose, collected one by one
#include <stdlib.h>
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef BLOCK
#define BLOCK 128
#endif
_Static_assert(BLOCK >= 8 && BLOCK % 8 == 0, "a block holds whole vectors: choose BLOCK from 8, 16, 24, ...");
typedef DTYPE T;
typedef T vec __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));

static int min(int a, int b) { return a < b ? a : b; }

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    T *BT = malloc((size_t)N * K * sizeof(T));
    for (int j = 0; j < N; ++j)
        for (int k = 0; k < K; ++k)
            BT[j * K + k] = B[k * N + j];
    for (int i0 = 0; i0 < M; i0 += BLOCK)
        for (int j0 = 0; j0 < N; j0 += BLOCK)
            for (int k0 = 0; k0 < K; k0 += BLOCK) {
                int i1 = min(i0 + BLOCK, M), j1 = min(j0 + BLOCK, N), k1 = min(k0 + BLOCK, K);
                for (int i = i0; i < i1; ++i) {
                    int j = j0;
                    for (; j + 8 <= j1; j += 8) {
                        vec c = k0 == 0 ? (vec){0} : *(vec *)&C[i * N + j];
                        const T *b = &BT[j * K];
                        for (int k = k0; k < k1; ++k)
                            c += A[i * K + k] * (vec){b[k], b[K + k], b[2 * K + k], b[3 * K + k], b[4 * K + k],
                                                      b[5 * K + k], b[6 * K + k], b[7 * K + k]};
                        *(vec *)&C[i * N + j] = c;
                    }
                    for (; j < j1; ++j) { // fewer than 8 columns are left
                        T c = k0 == 0 ? 0 : C[i * N + j];
                        for (int k = k0; k < k1; ++k)
                            c += A[i * K + k] * BT[j * K + k];
                        C[i * N + j] = c;
                    }
                }
            }
    free(BT);
}
