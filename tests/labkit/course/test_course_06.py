"""Checks of notebook 06: what students start from and typical mistakes fail, with words that help."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.criteria import hints, kernels
from labkit.course.exercises import lab_06

STARTERS = {
    "06.1": (1, "(1, 1)", "(32, 8)", "initcheck", lab_06.ROWS_OF),
    "06.2": (4, "14", "4"),
    "06.3": (5, "24.25", lab_06.WHOLE),
    "06.4": (4, lab_06.EARLY),
}

test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

IN, OUT = "in[(row + i) * cols + col]", "out[(out_row + i) * rows + out_col]"
READ_GUARD, WRITE_GUARD = "row + i < rows && col < cols", "out_row + i < cols && out_col < rows"
STORE, LOAD = "tile[y + i][x] =", "= tile[x][y + i]"
LOOP = "for (int i = 0; i < 32; i += 8)\n        if ({})"
BARRIER = "    __syncthreads();\n"
LANES = '_Pragma("unroll 1") for (int n = 0; n < 32; ++n) if (n == x)'
STEPS, SUM = "for (int k = 0; k < TILE; ++k)", "sum += A_tile[y][k] * B_tile[k][x];"
WHOLE = "blockIdx.x * 32 + 32 <= cols && blockIdx.y * 32 + 32 <= rows"
A_ZEROS, B_ZEROS = "row < M && k0 + x < K ? A[row * K + k0 + x] : 0", "B[(k0 + y) * N + col]"

EIGHT = "".join(f"{SUM}\n".replace("k]", f"k + {i}]") for i in range(8)) + "}"

LOAD_4 = "x[i] = first + 256 * i < n ? in[first + 256 * i] : 0;"
STORE_GUARD_4 = "        if (first + 256 * i < n)\n    "
STORE_4 = "out[first + 256 * i] = 2 * x[i];"
NEIGHBOURS_4 = (("+ threadIdx.x", "+ 4 * threadIdx.x"), ("256 * i", "i"))
ONE_BY_ONE_4 = (
    (LOAD_4, f"{{ {LOAD_4} __threadfence(); if (first + 256 * i < n) {STORE_4} }}"),
    (f"{STORE_GUARD_4}        {STORE_4}", "        ;"),
)
PLAIN_4 = "if (first + 256 * i < n) out[first + 256 * i] = 2 * in[first + 256 * i];"

# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    (
        "06.1",
        "one warp works",
        1,
        kernels.OWN,
        (
            "    #pragma unroll\n    for (int i = 0; i < 32; i += 8)",
            "    for (int i = 0; y == 0 && i < 32; ++i)",
        ),
    ),
    ("06.3", "a row without its guard", 2, lab_06.PAST.out_of_bounds, ("row + i < rows", "row < rows")),
    (
        "06.1",
        "loops in the first half alone",
        1,
        "out[8, 0]",
        (LOOP.format(WRITE_GUARD), LOOP.format(WRITE_GUARD).replace("< 32", "< 8")),
    ),
    ("06.1", "rows side by side", 1, lab_06.ROWS_OF, (STORE, "tile[4 * y + i / 8][x] =")),
    (
        "06.1",
        "guard of the first row for all",
        2,
        lab_06.EACH_ROW,
        ("row + i < rows", "row < rows"),
    ),
    ("06.1", "guards exchanged", 1, lab_06.ROWS_OF, (READ_GUARD, "row + i < cols && col < rows")),
    ("06.1", "no barrier", 1, lab_06.BARRIER, (BARRIER, "")),
    (
        "06.1",
        "barrier in the loop, behind the guard",
        2,
        hints.ARRIVE,
        (BARRIER, ""),
        (f"{STORE} {IN};", f"{{ {STORE} {IN}; __syncthreads(); }}"),
    ),
    (
        "06.1",
        "blocks that write the same rows",
        1,
        lab_06.PLACES,
        ("out_row = blockIdx.x * 32 + y", "out_row = y"),
    ),
    ("06.1", "no padding", 4, lab_06.PADDED, ("tile[32][33]", "tile[32][32]")),
    (
        "06.1",
        "without the tile",
        4,
        "768",
        (f"{STORE} {IN}", f"out[col * rows + row + i] = {IN}"),
        (WRITE_GUARD, "false"),
    ),
    (
        "06.1",
        "a lane at a time",
        4,
        "768",
        ("tile[32][33]", "tile[32][32]"),
        (f"{STORE} {IN};", f"{{ float v = {IN}; {LANES} {STORE} v; }}"),
        (f"{OUT} {LOAD};", f"{{ float v; {LANES} v {LOAD}; {OUT} = v; }}"),
    ),
    (
        "06.2",
        "the end in the condition, unrolled",
        4,
        lab_06.EACH_STEP,
        (STEPS, "for (int k = 0; k < min(TILE, K - k0); ++k)"),
    ),
    ("06.2", "a question in each step", 4, lab_06.EACH_STEP, (SUM, f"if (k0 + k < K) {SUM}")),
    ("06.2", "four at a time", 4, lab_06.KNOWN, ("unroll", "unroll 4")),
    (
        "06.2",
        "TILE steps over repeated rows",
        1,
        lab_06.ZEROS,
        (B_ZEROS, "B[min(k0 + y, K - 1) * N + col]"),
        ("k0 + y < K && ", ""),
        (A_ZEROS, "row < M ? A[row * K + min(k0 + x, K - 1)] : 0"),
    ),
    ("06.2", "no guard along K", 1, lab_06.INNER.out_of_bounds, ("row < M && k0 + x < K", "row < M")),
    (
        "06.2",
        "16 steps, whatever TILE is",
        5,
        lab_06.MACRO,
        (STEPS, "for (int k = 0; k < 16; ++k)"),
    ),
    (
        "06.2",
        "eight steps by hand",
        6,
        "15",
        "2",
        "4",
        (STEPS, "for (int k = 0; k < TILE; k += 8) {"),
        (SUM, EIGHT),
    ),
    (
        "06.2",
        "written out where TILE divides K alone",
        4,
        "K=65",
        "16",
        ("        #pragma unroll\n", ""),
        (STEPS, f"if (K % TILE == 0) {{\n{STEPS} {SUM} }} else for (int k = 0; k < min(TILE, K - k0); ++k)"),
    ),
    (
        "06.2",
        "without the tiles",
        3,
        "4096",
        (
            "A_tile[y][k] * B_tile[k][x]",
            f"(row < M && col < N && k0 + k < K ? A[row * K + k0 + k] * {B_ZEROS.replace('y', 'k')} : 0)",
        ),
    ),
    ("06.3", "no guards at all", 2, lab_06.PAST.out_of_bounds, (WHOLE, "true")),
    (
        "06.3",
        "31 columns past the edge",
        2,
        "cols=63",
        ("blockIdx.x * 32 + 32 <= cols", "blockIdx.x * 32 + 31 <= cols"),
    ),
    (
        "06.3",
        "31 rows past the edge",
        2,
        "rows=31",
        ("blockIdx.y * 32 + 32 <= rows", "blockIdx.y * 32 + 31 <= rows"),
    ),
    ("06.3", "columns alone", 2, lab_06.PAST.out_of_bounds, (" && blockIdx.y * 32 + 32 <= rows", "")),
    (
        "06.3",
        "the last that fits is not whole",
        5,
        lab_06.BOTH_WAYS,
        ("<= cols &&", "< cols &&"),
        ("32 <= rows", "32 < rows"),
    ),
    ("06.3", "only when read", 5, "18", (f"whole || ({WRITE_GUARD})", WRITE_GUARD)),
    ("06.3", "whole matrices alone", 6, "25", (WHOLE, "rows % 32 == 0 && cols % 32 == 0")),
    ("06.3", "one size", 5, "cols=160", (WHOLE, "rows == 128 && cols == 96")),
    (
        "06.3",
        "a thread's own four rows",
        2,
        lab_06.PAST.out_of_bounds,
        (WHOLE, "row + 24 < rows && col < cols"),
    ),
    ("06.4", "no guard of the store", 1, lab_06.FOUR_EACH.out_of_bounds, (STORE_GUARD_4, "")),
    ("06.4", "neighbours in one thread", 3, "2048", *NEIGHBOURS_4),
    ("06.4", "one element each", 1, lab_06.FOUR_EACH.usual, ("i < 4", "i < 1")),
    (
        "06.4",
        "loops that are kept",
        4,
        "16",
        ("#pragma unroll", "#pragma unroll 1"),
    ),
    ("06.4", "a barrier between", 4, lab_06.EARLY, *ONE_BY_ONE_4),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)

# exercise, how it differs, then what to replace in the solution
OTHERS = [
    (
        "06.1",
        "no pragma; as many rows as the block has",
        ("    #pragma unroll\n", ""),
        ("i += 8", "i += blockDim.y"),
    ),
    (
        "06.1",
        "turned when stored, swizzled",
        ("tile[32][33]", "tile[32][32]"),
        (STORE, "tile[x][(y + i) ^ x] ="),
        (LOAD, "= tile[y + i][x ^ (y + i)]"),
    ),
    (
        "06.2",
        "no pragma: the compiler sees it, downwards",
        ("        #pragma unroll\n", ""),
        (STEPS, "for (int k = TILE - 1; k >= 0; --k)"),
    ),
    (
        "06.2",
        "eight steps by hand, and the rest",
        (STEPS, "for (int k = 0; k + 8 <= TILE; k += 8) {"),
        (SUM, EIGHT + "\n#pragma unroll\n" + f"for (int k = TILE / 8 * 8; k < TILE; ++k) {SUM}"),
    ),
    (
        "06.2",
        "the last round apart",
        ("        #pragma unroll\n", ""),
        (STEPS, f"if (k0 + TILE <= K) {{\n{STEPS} {SUM} }} else for (int k = 0; k < K - k0; ++k)"),
    ),
    (
        "06.2",
        "guards as branches, two sums",
        (
            f"= {A_ZEROS};",
            "= 0;\nif (row < M)\n    if (k0 + x < K)\n        A_tile[y][x] = A[row * K + k0 + x];",
        ),
        ("float sum = 0;", "float sum = 0, odd = 0;"),
        (SUM, f"if (k % 2) odd {SUM[4:]} else {SUM}"),
        ("= sum;", "= sum + odd;"),
    ),
    (
        "06.3",
        "two kernels in one",
        (
            f"    bool whole = {WHOLE};\n",
            f"""
    if ({WHOLE}) {{
        for (int i = 0; i < 32; i += 8)
            {STORE} {IN};
        __syncthreads();
        for (int i = 0; i < 32; i += 8)
            {OUT} {LOAD};
        return;
    }}
    const bool whole = false;
""",
        ),
    ),
    (
        "06.3",
        "a pointer that goes along",
        ("    bool whole", "    in += row * cols + col;\n    bool whole"),
        (IN, "in[i * cols]"),
    ),
]

OTHERS += [
    (
        "06.4",
        "arrays that do not overlap",
        ("const float* in, float* out", "const float* __restrict__ in, float* __restrict__ out"),
        (LOAD_4, PLAIN_4),
        (f"{STORE_GUARD_4}        {STORE_4}", "        ;"),
    ),
    ("06.4", "doubled when loaded", (" * i] : 0;", " * i] * 2 : 0;"), ("2 * x[i]", "x[i]")),
]

test_another_right_answer_passes = checks_of_other_answers(OTHERS)
