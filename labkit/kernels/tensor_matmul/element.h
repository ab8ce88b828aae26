// element.h: the types of A, B and C that DTYPE names, and how elements cross the edges of a matrix
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>
using nvcuda::wmma::precision::tf32;  // a float of which the tensor cores read the upper 19 bits
template <class Name> struct Element {
    static_assert(sizeof(Name*) == 0, "choose half, __nv_bfloat16, tf32 or __nv_fp8_e4m3 for DTYPE");
};
template <> struct Element<half> { using In = half; using Out = half; using Pair = half2; };
template <> struct Element<__nv_bfloat16> {
    using In = __nv_bfloat16; using Out = __nv_bfloat16; using Pair = __nv_bfloat162;
};
template <> struct Element<tf32> { using In = float; using Out = float; using Pair = float2; };
template <> struct Element<__nv_fp8_e4m3> { using In = __nv_fp8_e4m3; using Out = half; using Pair = half2; };
using T = Element<DTYPE>::In;       // of A and B
using Out = Element<DTYPE>::Out;    // of C
using Pair = Element<DTYPE>::Pair;  // two neighbours of C
constexpr int T_BYTES = sizeof(T), CHUNK = 16 / T_BYTES;  // CHUNK: elements in 16 bytes

// Return the 16 bytes of row `row` that begin at column `col`, with 0 past the edges.
__device__ uint4 load16(const T* matrix, int rows, int cols, int row, int col)
{
    uint4 chunk = {};
    const T* from = &matrix[(size_t)row * cols + col];
    if (cols % CHUNK == 0) {  // every row begins at a multiple of 16 bytes
        if (row < rows && col < cols)
            chunk = *(const uint4*)from;
    } else
        for (int i = 0; i < CHUNK; ++i)
            if (row < rows && col + i < cols)
                ((T*)&chunk)[i] = from[i];
    return chunk;
}

// Return alpha times a sum plus beta times the old element of C. As in BLAS, beta == 0 means that C is not
// read: it may hold NaN, and 0 * NaN is NaN.
__device__ Out scaled(float sum, const Out* old, float alpha, float beta)
{
    return Out(beta != 0 ? alpha * sum + beta * float(*old) : alpha * sum);
}

// Return what C[row][col] and C[row][col + 1] become. N is even: a pair begins at a multiple of its size.
__device__ Pair scaled_pair(
    const Out* C, int M, int N, int row, int col, float sum0, float sum1, float alpha, float beta)
{
    Pair old = {};
    if (beta != 0 && row < M && col < N)
        old = *(const Pair*)&C[(size_t)row * N + col];
    return {scaled(sum0, &old.x, alpha, beta), scaled(sum1, &old.y, alpha, beta)};
}

// Write C[row][col] and C[row][col + 1], for an even col, where they are inside.
__device__ void store_pair(
    Out* C, int M, int N, int row, int col, float sum0, float sum1, float alpha, float beta)
{
    Out* to = &C[(size_t)row * N + col];
    if (row >= M || col >= N)
        return;
    if (N % 2 == 0) {
        *(Pair*)to = scaled_pair(C, M, N, row, col, sum0, sum1, alpha, beta);
        return;
    }
    to[0] = scaled(sum0, &to[0], alpha, beta);
    if (col + 1 < N)
        to[1] = scaled(sum1, &to[1], alpha, beta);
}
