// matmul_cpu_8_threads.c: C (M,N) = A (M,K) B (K,N), row-major, on THREADS cores
// idea: all threads pack the block of B together and wait for each other; then each multiplies its rows of A
//       with it. A block of threads on a GPU does the same with shared memory and __syncthreads()
#include "cpu_team.h"
#include "cpu_packing.h"

struct job {
    const T *A, *B;
    T *C, *packed_B;
    int lda, ldb, ldc, M, N, K, share, MB, NB, KB, add; // share: rows of A and C for each thread
};

static void multiply(struct team *team, int number, void *argument)
{
    struct job *p = argument;
    void *memory = malloc((size_t)p->MB * p->KB * sizeof(T) + 64);
    T *packed_A = aligned(memory);
    int begin = number * p->share, end = min(begin + p->share, p->M);
    for (int j0 = 0; j0 < p->N; j0 += p->NB)
        for (int k0 = 0; k0 < p->K; k0 += p->KB) {
            int nb = min(p->NB, p->N - j0), kb = min(p->KB, p->K - k0);
            for (int j = number * NR; j < nb; j += THREADS * NR)
                pack_B(&p->B[k0 * p->ldb + j0 + j], p->ldb, kb, nb - j, &p->packed_B[j * kb]);
            barrier(team); // the block of B is complete
            for (int i0 = begin; i0 < end; i0 += p->MB) {
                int mb = min(p->MB, end - i0);
                pack_A(&p->A[i0 * p->lda + k0], p->lda, mb, kb, packed_A);
                for (int j = 0; j < nb; j += NR)
                    for (int i = 0; i < mb; i += MR)
                        micro_kernel(kb, &packed_A[i * kb], 1, MR, &p->packed_B[j * kb], NR,
                                     &p->C[(i0 + i) * p->ldc + j0 + j], p->ldc, min(MR, mb - i),
                                     min(NR, nb - j), p->add || k0 > 0,
                                     &p->packed_B[(j + NR) * kb + i / MR * AHEAD * kb], AHEAD);
            }
            barrier(team); // nobody needs it any more
        }
    free(memory);
}

// C = A B, or C += A B where `add`, for parts of larger matrices, whose rows are lda, ldb and ldc apart.
static void product(const T *A, int lda, const T *B, int ldb, T *C, int ldc, int M, int N, int K, int add)
{
    int KB = equal_part(K, KC, 1), NB = equal_part(N, NC, NR);
    int share = equal_part(M, (M + THREADS - 1) / THREADS, MR), MB = equal_part(share, MC, MR);
    void *memory = malloc((size_t)KB * NB * sizeof(T) + 64);
    struct job job = {A, B, C, aligned(memory), lda, ldb, ldc, M, N, K, share, MB, NB, KB, add};
    run_team(multiply, &job);
    free(memory);
}

#ifndef PART_OF_ANOTHER_RUNG // Strassen's rung builds on `product`
void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    product(A, K, B, N, C, N, M, N, K, 0);
}
#endif
