// matmul_0_peak.cu: as many multiply-adds as C (M,N) = A (M,K) B (K,N) takes, and no memory: the ceiling
// idea: CHAINS sums a thread in registers, none of which waits for another; C gets their total, so that the
//       compiler cannot leave them out. Exactly M N K multiply-adds where BLOCK * CHAINS divides M N
// launch: block (BLOCK), grid (ceil(M*N/(BLOCK*CHAINS))); any M, N, K
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef CHAINS
#define CHAINS 8
#endif
static_assert(BLOCK >= 1 && BLOCK <= 1024, "a block holds 1 to 1024 threads: choose such a BLOCK");
static_assert(CHAINS >= 1 && CHAINS <= 32, "the sums must fit the registers: choose CHAINS from 1 to 32");
using T = DTYPE;

extern "C" __global__ void matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
{
    int thread = blockIdx.x * BLOCK + threadIdx.x;
    if (thread >= M * N)
        return;  // a small C

    T x = A[0], y = B[0], sum[CHAINS];  // values that the compiler does not know
    #pragma unroll
    for (int i = 0; i < CHAINS; ++i)
        sum[i] = T(thread + i);  // all alike, they would be computed once
    #pragma unroll 32  // the loop's own instructions are then 1 % of all
    for (int k = 0; k < K; ++k)
        #pragma unroll
        for (int i = 0; i < CHAINS; ++i)
            sum[i] = sum[i] * x + y;

    T total = beta;
    #pragma unroll
    for (int i = 0; i < CHAINS; ++i)
        total += alpha * sum[i];
    C[thread] = total;
}
