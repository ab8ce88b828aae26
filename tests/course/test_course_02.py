"""Checks of notebook 02: what students start from and typical mistakes fail, with words that help."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

# What a student reads who runs the check before changing anything.
STARTERS = {
    "02.1": ["Nothing has changed: is the output written?"],
    "02.2": ["Nothing has changed: is the output written?"],
    "02.3": ["alpha=1 beta=1"],
    "02.4": ["line 12 has 8 sectors per request; the goal is at most 4", "12 | float a = A[row * K + k];"],
    "02.5": [
        "✓ accepts right results, of small and large elements",
        "elements of up to 100; one element is off by 0.9 of its bound",
        "is_right(got, A, B) should return True, and returns False.",
        "with u = 2**-24",
    ],
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


COL, ROW = "threadIdx.x % 32", "threadIdx.x / 32"
BOUND = "K * u / (1 - K * u) * (abs(A)"
TEST = "bool((abs(got - exact) <= bound).all())"
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
    ("02.2", "one term too many", "k counts from 0 to K - 1", ("k < K", "k <= K")),
    ("02.2", "four terms at a time", "Nothing is added to the sum", ("k < K", "k < K / 4 * 4")),
    ("02.2", "at most 256 terms", "the last 45 of 301 terms", ("k < K", "k < min(K, 256)")),
    (
        "02.2",
        "x counts rows",
        "does col come from blockIdx.x",
        ("int col", "int other"),
        ("int row", "int col"),
        ("int other", "int row"),
    ),
    (
        "02.3",
        "alpha and beta exchanged",
        "becomes alpha times the sum plus beta times",
        ("alpha * sum", "beta * sum"),
        ("+= beta *", "+= alpha *"),
    ),
    ("02.3", "beta as an integer", "alpha=1.5 beta=-0.5", ("+= beta *", "+= (int)beta *")),
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
        "one thread per row of the block's part",
        "524,288 times; the goal is at most 32,768",
        ("    int col", "    for (int v = 0; v < 32 && (threadIdx.x & 31) == 0; ++v) {\n    int col"),
        (COL, "v"),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.4",
        "one warp does the rows of all",
        "few warps do the work of all",
        ("    int col", "    for (int h = 0; h < 8 && threadIdx.x < 32; ++h) {\n    int col"),
        (ROW, "h"),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    ("02.4", "patches of 16 x 16 threads", "All wrong", (COL, "threadIdx.x % 16"), (ROW, "threadIdx.x / 16")),
    ("02.4", "rows of a block of 16 x 16", "each thread needs a row of the 8", ("* 32 + ", "* 16 + ")),
    ("02.4", "8 for 32", "each thread needs a row of the 8", (COL, "threadIdx.x % 8")),
    (
        "02.5",
        "NaN is not above anything",
        "NaN compares as False",
        (TEST, "not (abs(got - exact) > bound).any()"),
    ),
    ("02.5", "the largest bound", "element by element", ("<= bound", "<= bound.max()")),
    (
        "02.5",
        "a fixed tolerance",
        "elements of up to 100",
        (f'{BOUND}.astype("float64") @ abs(B).astype("float64"))', "0.01"),
    ),
    ("02.5", "NaN for 0", "as nobody has written it", ("abs(got", "abs(np.nan_to_num(got)")),
    (
        "02.5",
        "an exact product in float32",
        "work it out in float64",
        ('A.astype("float64") @ B.astype("float64")\n', "A @ B\n"),
    ),
    ("02.5", "bound without K", "0.9 of its bound", (BOUND, "u * (abs(A)")),
    ("02.5", "u of double", "rounded to float32", ("2.0**-24", "2.0**-53")),
    ("02.5", "u twice as large", "1.1 of its bound", ("2.0**-24", "2.0**-23")),
    ("02.5", "nothing", "returns None. Return True or False", (f"return {TEST}", f"print({TEST})")),
    ("02.5", "always right", "should return False", (f"return {TEST}", "return True")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


LOOP = "for (int k = 0; k < K; ++k)"
ADD = "sum += A[row * K + k] * B[k * N + col];"

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
    ("02.4", "bits", (COL, "(threadIdx.x & 31)"), (ROW, "(threadIdx.x >> 5)")),
    (
        "02.4",
        "one line",
        ("float a = A[row * K + k];\n        float b = B[k * N + col];\n        sum += a * b;", ADD),
    ),
    (
        "02.5",
        "with a loop",
        (
            "return " + TEST,
            "return all(abs(g - e) <= b for g, e, b in zip(got.flat, exact.flat, bound.flat))",
        ),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)
