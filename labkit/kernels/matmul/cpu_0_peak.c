// matmul_cpu_0_peak.c: as many multiply-adds as C (M,N) = A (M,K) B (K,N) takes, and no memory: the ceiling
// idea: MR * NV sums that do not wait for each other, in registers, as in the micro-kernel of rung 6; C gets
//       their total, so that the compiler cannot leave them out
#include "cpu_micro_kernel.h"
#include "cpu_team.h"

struct job {
    long steps; // of each thread
    T factor, total[THREADS];
};

WHOLE_VECTORS
static void multiply_add(struct team *team, int number, void *argument)
{
    (void)team;
    struct job *job = argument;
    vec c[MR][NV], x = job->factor - (vec){0}, y = x * x;
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v)
            c[i][v] = y * (T)(i * NV + v); // all alike, they would be computed once
    for (long step = 0; step < job->steps; ++step)
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
            for (int v = 0; v < NV; ++v)
                c[i][v] = c[i][v] * x + y;
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v)
            y += c[i][v];
    job->total[number] = y[0] + y[VECTOR - 1];
}

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    struct job job = {.steps = (long)M * N / (MR * NR) * K / THREADS, .factor = A[0] * B[0]};
    run_team(multiply_add, &job);
    for (int t = 0; t < THREADS; ++t)
        C[0] = t == 0 ? job.total[0] : C[0] + job.total[t];
}
