// cpu_micro_kernel.h: one tile of C, MR rows by NR columns, kept in registers (rungs 6 to 9)
// idea: MR x NV vectors of C are as many sums that do not wait for each other. A step along k loads NV
//       vectors of B and MR numbers of A for MR * NV fused multiply-adds: 10 loads for 24 with AVX-512
// registers: MR * NV sums, NV vectors of B and one number of A must fit: 29 of 32, or 15 of 16 with AVX2
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;

#ifndef VECTOR_BYTES // what a register of this processor holds
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
#define NV 4 // 32 registers
#else
#define NV 2 // 16 registers
#endif
#define MR 6
#define VECTOR ((int)(VECTOR_BYTES / sizeof(T)))
#define NR (NV * VECTOR)

// The compiler makes + and * of vectors SIMD instructions. They may lie at any address.
typedef T vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T))));

#if defined(__clang__) && VECTOR_BYTES == 64 // Clang would take two registers of half the size
#define WHOLE_VECTORS __attribute__((min_vector_width(512)))
#else
#define WHOLE_VECTORS
#endif

static int min(int a, int b) { return a < b ? a : b; }

// C = A B, or C += A B where `add`: A (MR,kc) has its elements at a[i * a_row + k * a_col], B (kc,NR) at
// b[k * b_row + j]. Of C, whose rows are ldc apart, only the first `rows` x `cols` elements are written. Each
// step fetches the line of next[k * ahead] into the second cache, for a later call, unless `ahead` is 0.
WHOLE_VECTORS
static inline void micro_kernel(int kc, const T *restrict a, int a_row, int a_col, const T *restrict b,
                                int b_row, T *restrict C, int ldc, int rows, int cols, int add, const T *next,
                                int ahead)
{
    vec c[MR][NV];
    for (int i = 0; i < MR; ++i)
        for (int v = 0; v < NV; ++v) {
            c[i][v] = (vec){0};
            if (i < rows) // C is wanted kc steps from now: fetch it meanwhile
                __builtin_prefetch(&C[i * ldc + v * VECTOR], 1);
        }
    for (int k = 0; k < kc; ++k) {
        if (ahead)
            __builtin_prefetch(&next[k * ahead], 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
            for (int v = 0; v < NV; ++v)
                c[i][v] += a[i * a_row + k * a_col] * *(const vec *)&b[k * b_row + v * VECTOR];
    }

    if (rows == MR && cols == NR) {
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
            for (int v = 0; v < NV; ++v) {
                vec *out = (vec *)&C[i * ldc + v * VECTOR];
                *out = add ? *out + c[i][v] : c[i][v];
            }
    } else { // at an edge of C
        T tile[MR][NR];
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
            for (int v = 0; v < NV; ++v)
                *(vec *)&tile[i][v * VECTOR] = c[i][v];
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < cols; ++j)
                C[i * ldc + j] = add ? C[i * ldc + j] + tile[i][j] : tile[i][j];
    }
}
