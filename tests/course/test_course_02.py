"""Checks of notebook 02: what students start from and typical mistakes fail, with words that help."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

# What a student reads who runs the check before changing anything.
STARTERS = {
    "02.1": ["Nothing has changed: is the output written?"],
    "02.2": ["Nothing has changed: is the output written?"],
    "02.3": ["alpha=1 beta=1"],
    "02.4": ["line 13 has 16 sectors per request; the goal is at most 4", "13 | float a = A[row * K + k];"],
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


PLACES = (
    "int col = blockIdx.x * blockDim.x + threadIdx.x;\n    int row = blockIdx.y * blockDim.y + threadIdx.y;"
)
EACH_COLUMN = "for (int v = 0; v < blockDim.x; ++v)"
GUARD_02 = "row >= M || col >= N"

# exercise, what is wrong, words of the answer, then what to replace in the solution
WRONG = [
    ("02.1", "columns of B", "matmul M=16 N=16 K=16", ("B[k * N + col]", "B[col * N + k]")),
    ("02.1", "strides of a square", "Row i of A begins at index i * K", ("row * K + k", "row * N + k")),
    (
        "02.1",
        "x for rows",
        "x counts columns",
        ("int col", "int t"),
        ("int row", "int col"),
        ("int t", "int row"),
    ),
    ("02.1", "one term short", "256 of 256 elements are wrong", ("k < K", "k < K - 1")),
    ("02.1", "sum not from zero", "C[0, 0] is", ("float sum = 0;", "float sum = 1;")),
    ("02.2", "no guard", "compare row with M and col with N", (GUARD_02, "false")),
    ("02.2", "guards exchanged", "compare row with M", (GUARD_02, "row >= N || col >= M")),
    ("02.2", "and for or", "invalid global", (GUARD_02, "row >= M && col >= N")),
    ("02.2", "guard too strict", "C[31, 0] is nan", ("row >= M ||", "row >= M - 1 ||")),
    ("02.3", "alpha forgotten", "alpha=3 beta=-2", ("alpha * sum", "sum")),
    (
        "02.3",
        "C read for beta = 0",
        "which nobody has",
        ("if (beta != 0)\n        result", "result"),
    ),
    ("02.3", "alpha for all", "it should scale the sum alone", ("+= beta", "+= alpha * beta")),
    ("02.3", "sum forgotten", "alpha=1 beta=1", ("result += beta", "result = beta")),
    ("02.4", "only the store", "elements are wrong", ("C[row * N + col]", "C[col * M + row]")),
    ("02.4", "half a guard", "invalid global read", ("row >= M || col >= N", "col >= N")),
    (
        "02.4",
        "a thread a row of the block",
        "262,144 times; the goal is at most 32,768",
        (
            PLACES,
            f"if (threadIdx.x) return;\n    {EACH_COLUMN} {{\n    {PLACES.replace('threadIdx.x;', 'v;')}",
        ),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.4",
        "rows from x",
        "line 16 has 16 sectors per request",
        ("Idx.x;", "?"),
        ("Idx.y;", "Idx.x;"),
        ("?", "Idx.y;"),
    ),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


LOOP = "for (int k = 0; k < K; ++k)"
ADD = "sum += A[row * K + k] * B[k * N + col];"
BY_NUMBER = (
    "int place = threadIdx.y * blockDim.x + threadIdx.x;\n"
    "    int col = blockIdx.x * blockDim.x + place % blockDim.x;\n"
    "    int row = blockIdx.y * blockDim.y + place / blockDim.x;"
)

# exercise, how it differs, then what to replace in the solution: right, too
OTHERS = [
    ("02.1", "from the end", (LOOP, "for (int k = K - 1; k >= 0; --k)")),
    (
        "02.1",
        "pointers",
        (LOOP, "const float *a = A + row * K, *b = B + col;\n    for (int k = 0; k < K; ++k, b += N)"),
        (ADD, "sum = fmaf(a[k], *b, sum);"),
    ),
    (
        "02.2",
        "work in a branch",
        (f"{GUARD_02})\n        return;", "row < M && col < N) {"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.2",
        "the loop is guarded",
        (f"    if ({GUARD_02})\n        return;\n", ""),
        (LOOP, "for (int k = 0; row < M && col < N && k < K; ++k)"),
        ("    C[row", "    if (row < M && col < N) C[row"),
    ),
    (
        "02.3",
        "one expression",
        ("float result = alpha * sum;\n    if (beta != 0)\n        result += beta * C[row * N + col];\n", ""),
        ("= result;", "= alpha * sum + (beta == 0 ? 0 : beta * C[row * N + col]);"),
    ),
    ("02.4", "by number in the block", (PLACES, BY_NUMBER)),
    (
        "02.4",
        "one line",
        ("float a = A[row * K + k];\n        float b = B[k * N + col];\n        sum += a * b;", ADD),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)
