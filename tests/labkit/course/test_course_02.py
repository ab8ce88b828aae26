"""Checks of notebook 02: what students start from and typical mistakes fail, with words that help."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.criteria import hints, kernels
from labkit.course.exercises import lab_02

# What a student reads who runs the check before changing anything.
STARTERS = {
    "02.1": 1,
    "02.2": 1,
    "02.3": (1, "alpha=1", "beta=1"),
    "02.4": (3, "12", "8", "4", "A[row * K + k]"),
    "02.5": (2, "100", "0.9", lab_02.HINT_OF[lab_02.BEYOND]),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


COL, ROW = "threadIdx.x % 32", "threadIdx.x / 32"
BOUND = "K * u / (1 - K * u) * (abs(A)"
TEST = "bool((abs(got - exact) <= bound).all())"
GUARD_02 = "row >= M || col >= N"

# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("02.1", "columns of B", 1, "M=16", "N=16", "K=16", ("B[k * N + col]", "B[col * N + k]")),
    ("02.1", "strides of a square", 2, lab_02.MAPPING, ("row * K + k", "row * N + k")),
    (
        "02.1",
        "x for rows",
        1,
        ("int col", "int t"),
        ("int row", "int col"),
        ("int t", "int row"),
    ),
    ("02.1", "one term short", 1, "256", ("k < K", "k < K - 1")),
    ("02.1", "sum not from zero", 1, "C[0, 0]", ("float sum = 0;", "float sum = 1;")),
    ("02.2", "no guard", 2, lab_02.GUARD, (GUARD_02, "false")),
    ("02.2", "guards exchanged", 1, lab_02.SCALED.untouched, (GUARD_02, "row >= N || col >= M")),
    ("02.2", "and for or", 2, lab_02.GUARD, (GUARD_02, "row >= M && col >= N")),
    ("02.2", "guard too strict", 1, "C[31, 0]", ("row >= M ||", "row >= M - 1 ||")),
    ("02.2", "one term too many", 1, lab_02.WITHIN_K, ("k < K", "k <= K")),
    ("02.2", "four terms at a time", 2, hints.NO_TERM, ("k < K", "k < K / 4 * 4")),
    ("02.2", "at most 256 terms", 2, "45", "301", ("k < K", "k < min(K, 256)")),
    (
        "02.2",
        "x counts rows",
        1,
        lab_02.SCALED.untouched,
        ("int col", "int other"),
        ("int row", "int col"),
        ("int other", "int row"),
    ),
    (
        "02.3",
        "alpha and beta exchanged",
        2,
        lab_02.BLAS,
        ("alpha * sum", "beta * sum"),
        ("+= beta *", "+= alpha *"),
    ),
    ("02.3", "beta as an integer", 4, "alpha=1.5", "beta=-0.5", ("+= beta *", "+= (int)beta *")),
    ("02.3", "alpha forgotten", 2, "alpha=3", "beta=-2", ("alpha * sum", "sum")),
    (
        "02.3",
        "C read for beta = 0",
        3,
        lab_02.UNREAD,
        ("if (beta != 0)\n        result", "result"),
    ),
    ("02.3", "alpha for all", 2, hints.ALPHA_FOR_ALL, ("+= beta", "+= alpha * beta")),
    ("02.3", "sum forgotten", 1, "alpha=1", "beta=1", ("result += beta", "result = beta")),
    ("02.4", "only the store", 1, lab_02.NUMBERED, ("C[row * N + col]", "C[col * M + row]")),
    ("02.4", "half a guard", 1, lab_02.GUARD, ("row >= M || col >= N", "col >= N")),
    (
        "02.4",
        "one thread per row of the block's part",
        4,
        "524,288",
        "32,768",
        ("    int col", "    for (int v = 0; v < 32 && (threadIdx.x & 31) == 0; ++v) {\n    int col"),
        (COL, "v"),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.4",
        "one warp does the rows of all",
        4,
        kernels.OWN,
        ("    int col", "    for (int h = 0; h < 8 && threadIdx.x < 32; ++h) {\n    int col"),
        (ROW, "h"),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.4",
        "patches of 16 x 16 threads",
        1,
        lab_02.NUMBERED,
        (COL, "threadIdx.x % 16"),
        (ROW, "threadIdx.x / 16"),
    ),
    ("02.4", "rows of a block of 16 x 16", 1, lab_02.NUMBERED, ("* 32 + ", "* 16 + ")),
    ("02.4", "8 for 32", 1, lab_02.NUMBERED, (COL, "threadIdx.x % 8")),
    (
        "02.5",
        "NaN is not above anything",
        4,
        lab_02.HINT_OF[lab_02.UNWRITTEN],
        (TEST, "not (abs(got - exact) > bound).any()"),
    ),
    ("02.5", "the largest bound", 5, lab_02.HINT_OF[lab_02.BEYOND], ("<= bound", "<= bound.max()")),
    (
        "02.5",
        "a fixed tolerance",
        2,
        "100",
        (f'{BOUND}.astype("float64") @ abs(B).astype("float64"))', "0.01"),
    ),
    ("02.5", "NaN for 0", 4, lab_02.UNWRITTEN, ("abs(got", "abs(np.nan_to_num(got)")),
    (
        "02.5",
        "an exact product in float32",
        5,
        lab_02.HINT_OF[lab_02.BEYOND],
        ('A.astype("float64") @ B.astype("float64")\n', "A @ B\n"),
    ),
    ("02.5", "bound without K", 1, lab_02.WITHIN, (BOUND, "u * (abs(A)")),
    ("02.5", "u of double", 1, lab_02.ROUNDED, ("2.0**-24", "2.0**-53")),
    ("02.5", "u twice as large", 5, lab_02.BEYOND, ("2.0**-24", "2.0**-23")),
    ("02.5", "nothing", 1, (f"return {TEST}", f"print({TEST})")),
    ("02.5", "always right", 3, lab_02.FORGOTTEN, (f"return {TEST}", "return True")),
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
