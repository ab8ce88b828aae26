// cpu_packing.h: copies of parts of A and B in the order in which the micro-kernel reads them (rungs 7 to 9)
#include "cpu_micro_kernel.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef KC // columns of A and rows of B in a block: a panel of B, KC x NR, fits the nearest cache or nearly
#define KC ((VECTOR_BYTES == 64 ? 2048 : 1536) / (int)sizeof(T))
#endif
#ifndef MC // rows of A in a block: MC x KC elements fill a part of the second cache
#define MC (VECTOR_BYTES == 64 ? 288 : 144)
#endif
// Numbers of the next panel of B that each step fetches. With narrower vectors steps have no time for it.
#define AHEAD (VECTOR_BYTES == 64 ? NR * MR / MC + 1 : 0)
#ifndef NC // columns of B in a block
#define NC 4096
#endif

// Size of equal parts of `total`, as few as have at most `most` each; a multiple of `unit`.
static int equal_part(int total, int most, int unit)
{
    int parts = (total + most - 1) / most, part = (total + parts - 1) / parts;
    return (part + unit - 1) / unit * unit;
}

// Panels of MR rows: for each k, MR numbers one after the other. Rows past the edge are 0.
static void pack_A(const T *A, int lda, int rows, int kc, T *packed)
{
    for (int i0 = 0; i0 < rows; i0 += MR, packed += MR * kc)
        for (int k = 0; k < kc; ++k)
            for (int i = 0; i < MR; ++i)
                packed[k * MR + i] = i0 + i < rows ? A[(i0 + i) * lda + k] : 0;
}

// A panel of NR columns, of which `cols` are there: for each k, NR numbers one after the other, or 0.
static void pack_B(const T *B, int ldb, int kc, int cols, T *packed)
{
    for (int k = 0; k < kc; ++k, B += ldb, packed += NR)
        if (cols >= NR)
            memcpy(packed, B, NR * sizeof(T));
        else
            for (int j = 0; j < NR; ++j)
                packed[j] = j < cols ? B[j] : 0;
}

// The first cache line of some memory: a vector that lies in one line is read faster than one across two.
static T *aligned(void *memory) { return (T *)(((uintptr_t)memory + 63) / 64 * 64); }
