// matmul_cpu_9_strassen.c: C (M,N) = A (M,K) B (K,N), row-major, with 7 products of quarters in place of 8
// idea: sums of quarters save one product in eight, at each of LEVELS levels; Winograd's form, with few sums
// limit: the sums go through memory, and rounding errors grow with each level
#define PART_OF_ANOTHER_RUNG
#include "cpu_8_threads.c"
#ifndef LEVELS
#define LEVELS 1
#endif
_Static_assert(LEVELS >= 0, "choose LEVELS from 0");

struct part { // of a matrix: rows x cols elements, whose rows are ld apart
    T *at;
    int ld, rows, cols;
};
struct combination {
    struct part a, b, out;
    T factor;
};

static void combine(struct team *team, int number, void *argument)
{
    (void)team;
    struct combination *p = argument;
    for (int i = number; i < p->out.rows; i += THREADS)
        for (int j = 0; j < p->out.cols; ++j)
            p->out.at[i * p->out.ld + j] = p->a.at[i * p->a.ld + j] + p->factor * p->b.at[i * p->b.ld + j];
}

// out = a + factor * b, element by element; out may be a or b
static void sum(struct part out, struct part a, T factor, struct part b)
{
    struct combination p = {a, b, out, factor};
    run_team(combine, &p);
}

static struct part quarter(struct part x, int down, int right)
{
    int rows = x.rows / 2, cols = x.cols / 2;
    return (struct part){x.at + down * rows * x.ld + right * cols, x.ld, rows, cols};
}

static struct part new_part(int rows, int cols)
{
    return (struct part){malloc((size_t)rows * cols * sizeof(T)), cols, rows, cols};
}

static void strassen(struct part A, struct part B, struct part C, int levels);

// C += A B
static void add_product(struct part A, struct part B, struct part C, int levels)
{
    if (levels == 0) {
        product(A.at, A.ld, B.at, B.ld, C.at, C.ld, A.rows, B.cols, A.cols, 1);
        return;
    }
    struct part P = new_part(C.rows, C.cols);
    strassen(A, B, P, levels);
    sum(C, C, 1, P);
    free(P.at);
}

// C = A B
static void strassen(struct part A, struct part B, struct part C, int levels)
{
    int M = C.rows, N = C.cols, K = A.cols, m = M / 2 * 2, n = N / 2 * 2, k = K / 2 * 2, below = levels - 1;
    if (levels == 0 || m == 0 || n == 0 || k == 0) {
        product(A.at, A.ld, B.at, B.ld, C.at, C.ld, M, N, K, 0);
        return;
    }
    struct part A11 = quarter(A, 0, 0), A12 = quarter(A, 0, 1), A21 = quarter(A, 1, 0), A22 = quarter(A, 1, 1);
    struct part B11 = quarter(B, 0, 0), B12 = quarter(B, 0, 1), B21 = quarter(B, 1, 0), B22 = quarter(B, 1, 1);
    struct part C11 = quarter(C, 0, 0), C12 = quarter(C, 0, 1), C21 = quarter(C, 1, 0), C22 = quarter(C, 1, 1);
    struct part S = new_part(m / 2, k / 2), D = new_part(k / 2, n / 2), P = new_part(m / 2, n / 2);
    sum(S, A11, -1, A21);
    sum(D, B22, -1, B12);
    strassen(S, D, C22, below);
    sum(S, A21, 1, A22);
    sum(D, B12, -1, B11);
    strassen(S, D, P, below);
    sum(S, S, -1, A11);
    sum(D, B22, -1, D);
    strassen(A11, B11, C11, below);
    sum(C12, C11, 0, C11);
    add_product(S, D, C12, below);
    sum(C22, C22, 1, C12);
    sum(C21, C22, 0, C22);
    sum(C22, C22, 1, P);
    sum(C12, C12, 1, P);
    sum(S, A12, -1, S);
    add_product(S, B22, C12, below);
    sum(D, B21, -1, D);
    add_product(A22, D, C21, below);
    add_product(A12, B21, C11, below);
    free(S.at);
    free(D.at);
    free(P.at);
    // An odd size leaves a last column of A and row of B, column of B, row of A.
    if (k < K)
        product(A.at + k, A.ld, B.at + k * B.ld, B.ld, C.at, C.ld, m, n, 1, 1);
    if (n < N)
        product(A.at, A.ld, B.at + n, B.ld, C.at + n, C.ld, m, 1, K, 0);
    if (m < M)
        product(A.at + m * A.ld, A.ld, B.at, B.ld, C.at + m * C.ld, C.ld, 1, N, K, 0);
}

void matmul(const T *restrict A, const T *restrict B, T *restrict C, int M, int N, int K)
{
    strassen((struct part){(T *)A, K, M, K}, (struct part){(T *)B, N, K, N}, (struct part){C, N, M, N}, LEVELS);
}
