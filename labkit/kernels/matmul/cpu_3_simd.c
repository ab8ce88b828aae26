// matmul_cpu_3_simd.c: C (M,N) = A (M,K) B (K,N), row-major, float32, eight columns of C at a time
// idea: one instruction multiplies and adds 8 floats (fused multiply-add, FMA); 8 sums stay in a register
// limit: each FMA waits for the last one, and walks down 8 columns of B: one cache line per step, half used
typedef float T;

#if defined(__AVX2__) && defined(__FMA__) // x86: the report's five instructions
#include <immintrin.h>
typedef __m256 vec;
static vec zero(void) { return _mm256_setzero_ps(); }
static vec load(const T *x) { return _mm256_loadu_ps(x); }
static vec multiply_add(const T *a, vec b, vec c) { return _mm256_fmadd_ps(_mm256_broadcast_ss(a), b, c); }
static void store(T *x, vec c) { _mm256_storeu_ps(x, c); }
#else // the same in the vector notation of GCC and Clang, for any processor
typedef T vec __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));
static vec zero(void) { return (vec){0}; }
static vec load(const T *x) { return *(const vec *)x; }
static vec multiply_add(const T *a, vec b, vec c) { return *a * b + c; }
static void store(T *x, vec c) { *(vec *)x = c; }
#endif

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    for (int i = 0; i < M; ++i) {
        int j = 0;
        for (; j + 8 <= N; j += 8) {
            vec c = zero();
            for (int k = 0; k < K; ++k)
                c = multiply_add(&A[i * K + k], load(&B[k * N + j]), c);
            store(&C[i * N + j], c);
        }
        for (; j < N; ++j) { // fewer than 8 columns are left
            T sum = 0;
            for (int k = 0; k < K; ++k)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    }
}
