// matmul_cpu.c: C = A B in float on one core of the CPU: loops, vectors, and blocks for the cache
//
// Four versions: three loops; eight columns of C at a time, which AVX multiplies and adds by one
// instruction; the same in blocks that stay in the cache; and in blocks of a B that is transposed first,
// where neighbouring columns no longer lie side by side. Then the blocked version by size of the blocks.
//
// build:  gcc -O2 -mavx2 -mfma matmul_cpu.c -o matmul_cpu -lm     on x86
//         gcc -O2 matmul_cpu.c -o matmul_cpu -lm                  on other processors
// run:    ./matmul_cpu             7: 2^7 = 128 rows and columns
//         ./matmul_cpu 7 8 9 10    128, 256, 512 and 1024 rows and columns
// prints: per size the times and GFLOP/s, the sum of C, and PASS. Where an element is wrong it prints
//         FAIL, and the exit code is 1.

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LANES 8  // floats of a vector
#define DEFAULT_BLOCK 64  // rows and columns of a block
#define MOST_CPU_STEPS 268435456.0  // multiplications for the check

// Eight floats at any address. The compiler makes * and + of them SIMD instructions: with -mavx2 -mfma one
// AVX instruction, on other processors what those have.
typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

static void matmul_loops(const float *A, const float *B, float *C, int n, int block)
{
    (void)block;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int k = 0; k < n; ++k)
                sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}

static void matmul_vectors(const float *A, const float *B, float *C, int n, int block)
{
    (void)block;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; j += LANES) {
            Vector sum = {0};
            for (int k = 0; k < n; ++k)
                sum += A[i * n + k] * *(const Vector *)&B[k * n + j];
            *(Vector *)&C[i * n + j] = sum;
        }
}

static void matmul_blocked(const float *A, const float *B, float *C, int n, int block)
{
    for (int i0 = 0; i0 < n; i0 += block)
        for (int j0 = 0; j0 < n; j0 += block)
            for (int k0 = 0; k0 < n; k0 += block)
                for (int i = i0; i < i0 + block; ++i)
                    for (int j = j0; j < j0 + block; j += LANES) {
                        Vector sum = {0};
                        if (k0 > 0)
                            sum = *(const Vector *)&C[i * n + j];
                        for (int k = k0; k < k0 + block; ++k)
                            sum += A[i * n + k] * *(const Vector *)&B[k * n + j];
                        *(Vector *)&C[i * n + j] = sum;
                    }
}

static void matmul_blocked_transposed(const float *A, const float *B, float *C, int n, int block)
{
    float *BT = malloc((size_t)n * n * sizeof(float));
    if (!BT) {
        perror("the transpose of B");
        exit(EXIT_FAILURE);
    }
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k)
            BT[j * n + k] = B[k * n + j];

    for (int i0 = 0; i0 < n; i0 += block)
        for (int j0 = 0; j0 < n; j0 += block)
            for (int k0 = 0; k0 < n; k0 += block)
                for (int i = i0; i < i0 + block; ++i)
                    for (int j = j0; j < j0 + block; j += LANES) {
                        Vector sum = {0};
                        if (k0 > 0)
                            sum = *(const Vector *)&C[i * n + j];
                        for (int k = k0; k < k0 + block; ++k) {
                            const float *b = &BT[j * n + k];
                            Vector column = {b[0],     b[n],     b[2 * n], b[3 * n],
                                             b[4 * n], b[5 * n], b[6 * n], b[7 * n]};
                            sum += A[i * n + k] * column;
                        }
                        *(Vector *)&C[i * n + j] = sum;
                    }
    free(BT);
}

struct version {
    const char *name;
    void (*matmul)(const float *A, const float *B, float *C, int n, int block);
};

static const struct version VERSIONS[] = {
    {"loops", matmul_loops},
    {"vectors", matmul_vectors},
    {"blocked", matmul_blocked},
    {"blocked, B transposed", matmul_blocked_transposed},
};

// The matrices, and some rows of A B in double, evenly spread: all rows where that takes little time.
struct problem {
    int n, checked;  // rows of the matrices, and of `expected`
    float *A, *B, *C;
    double *expected;
};

// A new array of n x n numbers.
static void *allocate(int n, size_t bytes_per_number)
{
    void *numbers = malloc((size_t)n * n * bytes_per_number);
    if (!numbers) {
        perror("a matrix");
        exit(EXIT_FAILURE);
    }
    return numbers;
}

// Numbers from 0 to 1, the same everywhere: the upper bits of a linear congruential generator.
static void fill(float *numbers, int count, unsigned state)
{
    for (int i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (state >> 8) / 16777216.0f;
    }
}

static int checked_row(const struct problem *p, int i)
{
    return (int)((long long)i * p->n / p->checked);
}

static struct problem new_problem(int n)
{
    struct problem p = {.n = n, .checked = n};
    if (MOST_CPU_STEPS / n / n < n)
        p.checked = (int)(MOST_CPU_STEPS / n / n);
    p.A = allocate(n, sizeof(float));
    p.B = allocate(n, sizeof(float));
    p.C = allocate(n, sizeof(float));
    p.expected = allocate(n, sizeof(double));
    fill(p.A, n * n, 1);
    fill(p.B, n * n, 2);
    for (int i = 0; i < p.checked; ++i) {
        int row = checked_row(&p, i);
        for (int col = 0; col < n; ++col)
            p.expected[i * n + col] = 0;
        for (int k = 0; k < n; ++k)
            for (int col = 0; col < n; ++col)
                p.expected[i * n + col] += (double)p.A[row * n + k] * p.B[k * n + col];
    }
    return p;
}

static void free_problem(struct problem *p)
{
    free(p->A);
    free(p->B);
    free(p->C);
    free(p->expected);
}

// All terms are positive. Their roundings go up and down: the error grows with the root of their number.
static bool is_product(const struct problem *p)
{
    int n = p->n;
    double tolerance = 4 * FLT_EPSILON * sqrt(n);
    for (int i = 0; i < p->checked; ++i)
        for (int col = 0; col < n; ++col) {
            int row = checked_row(p, i);
            double is = p->C[row * n + col], should = p->expected[i * n + col];
            if (!(fabs(is - should) <= tolerance * should)) {  // in this form NaN is wrong, too
                fprintf(stderr, "C[%d][%d] is %.9g, but should be %.9g\n", row, col, is, should);
                return false;
            }
        }
    return true;
}

// Runs one version, prints its time, and says whether its product is right.
static bool run(const struct version *version, struct problem *p, int block)
{
    for (int i = 0; i < p->n * p->n; ++i)
        p->C[i] = NAN;  // what the version leaves out stays so
    clock_t begin = clock();
    version->matmul(p->A, p->B, p->C, p->n, block);
    double ms = 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("%12.3f %9.2f\n", ms, ms > 0 ? 2.0 * p->n * p->n * p->n / ms / 1e6 : 0);
    return is_product(p);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

// Prints both tables for one size. Returns whether all products are right.
static bool tables(int n)
{
    struct problem p = new_problem(n);
    bool good = true;
    int versions = sizeof VERSIONS / sizeof *VERSIONS;

    printf("\nN = %d                        time/ms   GFLOP/s\n", n);
    for (int i = 0; i < versions; ++i) {
        printf("%-24s", VERSIONS[i].name);
        good = run(&VERSIONS[i], &p, smaller(DEFAULT_BLOCK, n)) && good;
    }
    printf("blocks of\n");
    const struct version *blocked = &VERSIONS[2];
    for (int block = 8; block <= smaller(1024, n); block *= 2) {
        printf("%4d x %-17d", block, block);
        good = run(blocked, &p, block) && good;
    }

    double sum = 0;
    for (int i = 0; i < n * n; ++i)
        sum += p.C[i];
    printf("sum of C: %.8g\n", sum);
    free_problem(&p);
    return good;
}

// The exponent of a size that all blocks divide.
static int parse_exponent(const char *text)
{
    char *end;
    long exponent = strtol(text, &end, 10);
    if (end == text || *end != '\0' || exponent < 3 || exponent > 13) {
        fprintf(stderr, "'%s' is no exponent: give whole numbers from 3 to 13, for 2^3 to 2^13 rows\n", text);
        exit(EXIT_FAILURE);
    }
    return (int)exponent;
}

int main(int argc, char **argv)
{
    printf("matmul_cpu on one core\n");
    bool good = true;
    if (argc == 1)
        good = tables(1 << 7);
    for (int i = 1; i < argc; ++i)
        good = tables(1 << parse_exponent(argv[i])) && good;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
