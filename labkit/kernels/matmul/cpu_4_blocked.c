// matmul_cpu_4_blocked.c: C (M,N) = A (M,K) B (K,N), row-major, in blocks of BLOCK x BLOCK
// idea: BLOCK rows of C use the same block of B while it is in the cache
// limit: one sum at a time: each FMA waits for the one before it
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef BLOCK
#define BLOCK 128
#endif
_Static_assert(BLOCK >= 8 && BLOCK % 8 == 0, "a block holds whole vectors: choose BLOCK from 8, 16, 24, ...");
typedef DTYPE T;
// 8 numbers; the compiler makes + and * of them SIMD instructions. They may lie at any address.
typedef T vec __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));

static int min(int a, int b) { return a < b ? a : b; }

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    for (int i0 = 0; i0 < M; i0 += BLOCK)
        for (int j0 = 0; j0 < N; j0 += BLOCK)
            for (int k0 = 0; k0 < K; k0 += BLOCK) {
                int i1 = min(i0 + BLOCK, M), j1 = min(j0 + BLOCK, N), k1 = min(k0 + BLOCK, K);
                for (int i = i0; i < i1; ++i) {
                    int j = j0;
                    for (; j + 8 <= j1; j += 8) {
                        vec c = k0 == 0 ? (vec){0} : *(vec *)&C[i * N + j];
                        for (int k = k0; k < k1; ++k)
                            c += A[i * K + k] * *(const vec *)&B[k * N + j];
                        *(vec *)&C[i * N + j] = c;
                    }
                    for (; j < j1; ++j) { // fewer than 8 columns are left
                        T c = k0 == 0 ? 0 : C[i * N + j];
                        for (int k = k0; k < k1; ++k)
                            c += A[i * K + k] * B[k * N + j];
                        C[i * N + j] = c;
                    }
                }
            }
}
