"""Checks of notebook 08: starters and typical mistakes fail in words that help, other right answers pass."""

from course_tables import (
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
)

from labkit.course.criteria import hints
from labkit.course.exercises import lab_08

STARTERS = {
    "08.1": (5, "4096", lab_08.ONCE),
    "08.2": (6, "1.25", "0.5"),
    "08.3": (5, "16", "B[index]"),
    "08.4": (2, "2048", "64", "3", "20"),
    "08.5": (6, "0.5", "0.2", lab_08.TURNED),
    "08.6": (6, "0", "64", lab_08.NEXT_FIRST),
    "08.7": (6, "0.455", "0.36", lab_08.PAIRED),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


LAUNCH_1 = "// launch: block (32, 8), grid (ceil(N/32), ceil(M/32))\n"
INNER_1 = "sum[i] += A_tile[y + 8 * i][k] * B_tile[k][x];"
SECOND_BARRIER = "        __syncthreads();\n    }"
FROM_2 = "y = t / 8, x = t % 8"
ROW_2 = "row0 + y + 8 * i"
ALIGNED_LOAD = "        if (N % 4 == 0)\n            *(float4*)b"
ALIGNED_STORE = "    if (N % 4 == 0)\n        *(float4*)&C"
SQUARE_2 = """for (int k = 0; k < 8; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sum[4 * i + j] += A_tile[y + 8 * i][k] * B_tile[k][x + 8 * j];"""
STORE_2 = """for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            if (row0 + y + 8 * i < M && col0 + x + 8 * j < N)
                C[(row0 + y + 8 * i) * N + col0 + x + 8 * j] = sum[4 * i + j];"""
COLUMN_STORE_2 = """for (int i = 0; i < 16; ++i)
        if (row0 + y + i < M && col0 + x < N)
            C[(row0 + y + i) * N + col0 + x] = sum[i];"""
WIDE_COLUMN_2 = """for (int k = 0; k < 8; k += 4)
            for (int i = 0; i < 16; ++i) {
                float4 a = *(float4*)&A_tile[y + i][k];
                sum[i] += a.x * B_tile[k][x] + a.y * B_tile[k + 1][x];
                sum[i] += a.z * B_tile[k + 2][x] + a.w * B_tile[k + 3][x];
            }"""
ROUNDS = "    waves = -(-blocks // slots)\n"

HALVES = "    waves = round(blocks / slots + 0.5)\n"

B_ALONE_5 = (
    "*(float4*)b = *(float4*)&B_tile[k][x];",
    "for (int j = 0; j < 4; ++j)\n                b[j] = ((volatile float*)B_tile[k])[x + j];",
)

FIRST_6 = "    store(0);\n    __syncthreads();\n"
LOAD_6, STORE_6 = "        load(k0 + 8);\n", "        store(buffer ^ 1);\n"
LAST_6 = f"{STORE_6}        __syncthreads();\n"
A_6, B_6 = "A_tile[k0 / 8 % 2][i % 8][i / 8]", "B_tile[k0 / 8 % 2][i / 32][i % 32]"
COPIES_6 = (
    (
        "next_a[j] = row < M && ka < K ? A[row * K + ka] : 0;",
        f"if (row < M && ka < K) __pipeline_memcpy_async(&{A_6}, &A[row * K + ka], 4); else {A_6} = 0;",
    ),
    (
        "next_b[j] = kb < K && col < N ? B[kb * N + col] : 0;",
        f"if (kb < K && col < N) __pipeline_memcpy_async(&{B_6}, &B[kb * N + col], 4); else {B_6} = 0;",
    ),
)

ROWS_7, COLUMNS_7 = "(t / 16 * 2 + t / 2 % 2)", "(t / 4 % 4 * 2 + t % 2)"
B_7 = "*(float4*)b = *(float4*)&B_tile[k][x];"

# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("08.1", "no second barrier", 1, lab_08.BARRIERS, (SECOND_BARRIER, "    }")),
    (
        "08.1",
        "neighbouring rows read, distant ones stored",
        1,
        "C[1, 0]",
        ("A_tile[y + 8 * i]", "A_tile[4 * y + i]"),
    ),
    ("08.1", "guard of the first row only", 2, lab_08.INSIDE, ("row0 + y + 8 * i < M", "row0 + y < M")),
    (
        "08.1",
        "threads outside leave",
        2,
        hints.ARRIVE,
        ("    float sum[4]", "    if (col >= N) return;\n    float sum[4]"),
    ),
    ("08.1", "no launch line", 1, (LAUNCH_1, "")),
    (
        "08.1",
        "past shared memory",
        5,
        lab_08.ONCE,
        (
            INNER_1,
            "sum[i] += (row0 + y + 8 * i < M && k0 + k < K ? A[(row0 + y + 8 * i) * K + k0 + k] : 0)\n"
            "                    * (k0 + k < K && col < N ? B[(k0 + k) * N + col] : 0);",
        ),
    ),
    (
        "08.1",
        "B read anew for each row",
        6,
        ("A_tile[32][8], B_tile[8][32];", "A_tile[32][8];\n    __shared__ volatile float B_tile[8][32];"),
    ),
    (
        "08.1",
        "sums with an index that the compiler does not know",
        4,
        ("i < 4; ++i)\n                sum", "i < blockDim.y / 2; ++i)\n                sum"),
    ),
    ("08.2", "rows stored elsewhere", 1, lab_08.SQUARE.usual, (ROW_2, "row0 + 4 * y + i")),
    (
        "08.2",
        "a rectangle of 8 x 2",
        6,
        "0.625",
        (FROM_2, "y = t / 16, x = t % 16"),
        ("i < 4", "i < 8"),
        ("j < 4", "j < 2"),
        ("y + 8 * i", "y + 4 * i"),
        ("x + 8 * j", "x + 16 * j"),
        ("sum[4 * i + j]", "sum[2 * i + j]"),
    ),
    (
        "08.2",
        "a column, four of A a load",
        6,
        "1.062",
        "0.5",
        (FROM_2, "y = t / 32 * 16, x = t % 32"),
        (SQUARE_2, WIDE_COLUMN_2),
        (STORE_2, COLUMN_STORE_2),
        ("__shared__ float", "__shared__ alignas(16) float"),
    ),
    (
        "08.2",
        "a thread for each element and more",
        1,
        "1024",
        ("block (64)", "block (2048)"),
    ),
    ("08.3", "no guard of the alignment", 2, "16", ("N % 4 == 0", "true")),
    (
        "08.3",
        "other N forgotten",
        2,
        lab_08.FOUR.usual,
        ("    alignas(16) float sum[4]", "    if (N % 4)\n        return;\n    alignas(16) float sum[4]"),
    ),
    (
        "08.3",
        "B alone",
        5,
        (ALIGNED_STORE, ALIGNED_STORE.replace("N % 4 == 0", "false")),
    ),
    (
        "08.3",
        "A read anew for each column",
        6,
        "1.25",
        ("float a = A[row * K + k];", "volatile const float* again = &A[row * K + k];"),
        ("a * b[j]", "*again * b[j]"),
    ),
    ("08.3", "at one size alone", 5, "M=64", "N=256", "K=16", ("N % 4 == 0", "N == 128")),
    ("08.4", "half rounded to even", 2, "4.5", "9", (ROUNDS, HALVES)),
    ("08.4", "only whole tiles", 3, ("-(-M // tile_m)", "M // tile_m")),
    (
        "08.4",
        "one division for both sides",
        3,
        ("-(-M // tile_m) * -(-N // tile_n)", "-(-M * N // (tile_m * tile_n))"),
    ),
    (
        "08.4",
        "sides exchanged",
        3,
        ("-M // tile_m", "-M // tile_n"),
        ("-N // tile_n", "-N // tile_m"),
    ),
    ("08.4", "one round", 2, (ROUNDS, "    waves = 1\n")),
    (
        "08.4",
        "one round too many where they fit",
        2,
        (ROUNDS, "    waves = blocks // slots + 1\n"),
    ),
    ("08.4", "one block an SM", 1, ("per_sm * sms", "sms")),
    ("08.4", "an H200 only", 4, ("per_sm * sms", "per_sm * 132")),
    ("08.4", "nothing returned", 1, ("    return rate", "    rate")),
    ("08.5", "A alone", 6, "0.3125", B_ALONE_5),
    ("08.5", "rows of 32", 7, ("A_tile[8][36]", "A_tile[8][32]")),
    ("08.5", "not all of a large product", 8, ("k0 < K;", "k0 < min(K, 1000);")),
    ("08.5", "rows of 33", 1, lab_08.FOURS.misaligned, ("A_tile[8][36]", "A_tile[8][33]")),
    (
        "08.5",
        "stored elsewhere",
        1,
        lab_08.FOURS.usual,
        ("row0 + y + i) * N", "row0 + y / 4 + 8 * i) * N"),
    ),
    (
        "08.5",
        "a loop that the compiler cannot count",
        8,
        ("int j = 0; j < 4; ++j) {", "int i = t; i < 32 * 8; i += blockDim.x) {"),
        ("            int i = t + 64 * j;\n", ""),
    ),
    (
        "08.6",
        "loaded behind the multiply-adds",
        6,
        lab_08.NEXT_FIRST,
        (LOAD_6, ""),
        (STORE_6, f"{LOAD_6}{STORE_6}"),
    ),
    (
        "08.6",
        "loaded behind the multiply-adds, stored in the next round",
        6,
        lab_08.NEXT_FIRST,
        (FIRST_6, ""),
        (LOAD_6, "        store(buffer);\n        __syncthreads();\n"),
        (LAST_6, LOAD_6),
    ),
    ("08.6", "two barriers a round", 7, "33", "17", (STORE_6, f"        __syncthreads();\n{STORE_6}")),
    ("08.6", "stored over what is read", 1, lab_08.BUFFERS.race, ("buffer ^ 1", "buffer")),
    ("08.6", "no barrier behind the first tile", 1, lab_08.BUFFERS.race, (FIRST_6, "    store(0);\n")),
    ("08.6", "no barrier in the loop", 1, lab_08.BUFFERS.race, (LAST_6, STORE_6)),
    ("08.6", "the same tile loaded again", 1, (LOAD_6, LOAD_6.replace("k0 + 8", "k0"))),
    ("08.6", "nothing stored before the loop", 1, lab_08.BUFFERS.unfilled, ("    store(0);\n", "")),
    ("08.6", "four buffers", 8, "6656", ("A_tile[2]", "A_tile[4]")),
    (
        "08.6",
        "cp.async, which is over at once here",
        6,
        lab_08.NEXT_FIRST,
        ("// BEGIN SOLUTION", "#include <cuda_pipeline.h>"),
        *COPIES_6,
        ("    store(0);\n", "    __pipeline_wait_prior(0);\n"),
        (STORE_6, "        __pipeline_wait_prior(0);\n"),
    ),
    ("08.7", "rows in pairs alone", 6, "0.455", (ROWS_7, "(t / 8)"), (COLUMNS_7, "(t % 8)")),
    ("08.7", "columns in pairs alone", 6, "0.455", (ROWS_7, "(t % 8)"), (COLUMNS_7, "(t / 8)")),
    ("08.7", "rows of 32", 6, lab_08.PAIRED, ("A_tile[8][36]", "A_tile[8][32]")),
    ("08.7", "one bit in both", 1, lab_08.SQUARES.usual, (COLUMNS_7, "(t / 4 % 4 * 2 + t / 2 % 2)")),
    (
        "08.7",
        "squares of 4 x 8",
        6,
        lab_08.NO_MORE,
        ("block (64)", "block (32)"),
        ("j < 4; ++j) {", "j < 8; ++j) {"),
        ("t + 64 * j", "t + 32 * j"),
        (ROWS_7, "(t / 4)"),
        (COLUMNS_7, "(t % 4 * 2)"),
        ("sum[4][4]", "sum[4][8]"),
        ("b[4];", "b[8];"),
        (B_7, f"{B_7} *(float4*)&b[4] = *(float4*)&B_tile[k][x + 4];"),
        ("j < 4; ++j)\n", "j < 8; ++j)\n"),
    ),
    ("08.7", "not all of a large product", 6, ("k0 < K;", "k0 < min(K, 300);")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


# exercise, how it differs, then what to replace in the solution
OTHERS = [
    (
        "08.1",
        "two pairs of tiles, one barrier a round",
        ("A_tile[32][8], B_tile[8][32]", "A_tile[2][32][8], B_tile[2][8][32]"),
        ("A_tile[t", "A_tile[k0 / 8 % 2][t"),
        ("B_tile[y]", "B_tile[k0 / 8 % 2][y]"),
        ("A_tile[y", "A_tile[k0 / 8 % 2][y"),
        ("B_tile[k]", "B_tile[k0 / 8 % 2][k]"),
        (SECOND_BARRIER, "    }"),
    ),
    (
        "08.2",
        "neighbouring rows and columns, sums in two dimensions",
        ("y + 8 * i", "4 * y + i"),
        ("x + 8 * j", "4 * x + j"),
        ("float sum[16]", "float sum[4][4]"),
        ("sum[4 * i + j]", "sum[i][j]"),
    ),
    (
        "08.3",
        "each thread by its own address",
        (ALIGNED_LOAD, ALIGNED_LOAD.replace("N %", "col + 3 < N && (k * N + col) %")),
        (ALIGNED_STORE, ALIGNED_STORE.replace("N %", "col + 3 < N && (row * N + col) %")),
    ),
    (
        "08.4",
        "with math.ceil",
        ("def expected", "import math\n\ndef expected"),
        ("-(-M // tile_m) * -(-N // tile_n)", "math.ceil(M / tile_m) * math.ceil(N / tile_n)"),
        ("-(-blocks // slots)", "math.ceil(blocks / slots)"),
    ),
    (
        "08.4",
        "by what the last round leaves empty",
        ("rate * blocks / (waves * slots)", "rate * (1 - (waves * slots - blocks) / (waves * slots))"),
    ),
]

OTHERS += [
    ("08.5", "unrolled, sums in one dimension", ("sum[4][4]", "sum[16]"), ("sum[i][j]", "sum[4 * i + j]")),
    ("08.5", "longer rows", ("A_tile[8][36]", "A_tile[8][44]")),
    (
        "08.6",
        "the barrier at the start of a round",
        (FIRST_6, "    store(0);\n"),
        (LOAD_6, f"        __syncthreads();\n{LOAD_6}"),
        (LAST_6, STORE_6),
    ),
    (
        "08.6",
        "two tiles ahead",
        (FIRST_6, f"    store(0);\n{LOAD_6.replace('k0 + ', '')[4:]}    __syncthreads();\n"),
        (LOAD_6, ""),
        (LAST_6, f"{STORE_6}        load(k0 + 16);\n        __syncthreads();\n"),
    ),
    ("08.6", "nothing loaded behind the end", (LOAD_6, f"        if (k0 + 8 < K)\n    {LOAD_6}")),
    (
        "08.7",
        "a patch of 32 x 16, with the pairs exchanged",
        (ROWS_7, "(t / 8 % 4 * 2 + t % 2)"),
        (COLUMNS_7, "(t / 32 * 4 + t / 4 % 2 * 2 + t / 2 % 2)"),
    ),
]


test_an_answer_that_differs_is_right_too = checks_of_other_answers(OTHERS)
