// cpu_turn.h: the transpose of 8 x 8 elements in registers (rungs 3 and 4)
// idea: 8 registers hold 8 rows. Three rounds of exchanges between neighbours, of single elements, of pairs
//       and of fours, leave 8 columns in them; so only whole vectors are read and written
#include <stddef.h>
#ifndef DTYPE
#define DTYPE float
#endif
typedef DTYPE T;
typedef T vec __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else // an older GCC has its own name for it; the places are numbers as large as the elements
typedef __typeof__((vec){0} == (vec){0}) places;
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif

static inline void turn_8x8(const T *restrict in, size_t in_row, T *restrict out, size_t out_row)
{
    vec a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
        a[i] = *(const vec *)&in[i * in_row];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) { // single elements of two rows: 0-7 are the first's, 8-15 the second's
        b[i] = SHUFFLE(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = SHUFFLE(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) // pairs, of rows that are 2 apart
#pragma GCC unroll 8
        for (int j = 0; j < 2; ++j) {
            a[i + 2 * j] = SHUFFLE(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * j + 1] = SHUFFLE(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) { // fours, of rows that are 4 apart
        b[i] = SHUFFLE(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        b[i + 4] = SHUFFLE(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
        *(vec *)&out[i * out_row] = b[i];
}
