// matmul_cpu_7_packed.c: C (M,N) = A (M,K) B (K,N), row-major, from copies in the order of reading
// idea: the micro-kernel reads copies from front to back: a panel of B (KC x NR) from the nearest cache, a
//       block of A (MC x KC) from the second, a block of B (KC x NC) from the third
// limit: one core
#include "cpu_packing.h"

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    int KB = equal_part(K, KC, 1), MB = equal_part(M, MC, MR), NB = equal_part(N, NC, NR);
    void *memory = malloc(((size_t)MB * KB + (size_t)KB * NB) * sizeof(T) + 128);
    T *packed_B = aligned(memory), *packed_A = aligned(packed_B + KB * NB);
    for (int j0 = 0; j0 < N; j0 += NB)
        for (int k0 = 0; k0 < K; k0 += KB) {
            int nb = min(NB, N - j0), kb = min(KB, K - k0);
            for (int j = 0; j < nb; j += NR)
                pack_B(&B[k0 * N + j0 + j], N, kb, nb - j, &packed_B[j * kb]);
            for (int i0 = 0; i0 < M; i0 += MB) {
                int mb = min(MB, M - i0);
                pack_A(&A[i0 * K + k0], K, mb, kb, packed_A);
                for (int j = 0; j < nb; j += NR)
                    for (int i = 0; i < mb; i += MR)
                        micro_kernel(kb, &packed_A[i * kb], 1, MR, &packed_B[j * kb], NR,
                                     &C[(i0 + i) * N + j0 + j], N, min(MR, mb - i), min(NR, nb - j), k0 > 0,
                                     &packed_B[(j + NR) * kb + i / MR * AHEAD * kb], AHEAD);
            }
        }
    free(memory);
}
