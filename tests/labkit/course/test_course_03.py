"""Checks of notebook 03: what students start from and typical mistakes fail, with words that help."""

import pytest
from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters, mutant

from labkit.course import magic
from labkit.course.criteria import hints, kernels
from labkit.course.criteria.kernels import Hints, no_finding, right_on
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_03
from labkit.kernels.matmul.family import Matmul

FIRST = "        __syncthreads();\n        for"
SECOND = "        __syncthreads();\n    }"
A_TILE = "row < M && k0 + x < K ? A[row * K + k0 + x] : 0"
B_TILE = "k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0"

ONE_ARRAY = (
    ("A_tile[16][16], B_tile[16][16]", "tiles[512]"),
    ("A_tile[y][x]", "tiles[16 * y + x]"),
    ("B_tile[y][x]", "tiles[256 + 16 * y + x]"),
    ("A_tile[y][k] * B_tile[k][x]", "tiles[16 * y + k] * tiles[256 + 16 * k + x]"),
)

ONE_WARP = (
    ("float sum = 0", "float sums[8] = {}"),
    ("A_tile[y][x] = A[row", "if (y < 2) for (int r = y; r < 16; r += 2) A_tile[r][x] = A[(row - y + r)"),
    ("B_tile[y][x] = B[(k0 + y)", "if (y < 2) for (int r = y; r < 16; r += 2) B_tile[r][x] = B[(k0 + r)"),
    ("for (int k = 0;", "if (y < 2) for (int r = y; r < 16; r += 2) for (int k = 0;"),
    ("sum += A_tile[y]", "sums[r / 2] += A_tile[r]"),
    ("    C[row * N", "    if (y < 2) for (int r = y; r < 16; r += 2) C[(row - y + r) * N"),
    ("= sum;", "= sums[r / 2];"),
)
BT_SCATTERED = "B_tile[x][y] = col < N && k0 + y < K ? BT[b_row * K + k0 + y]"

STARTERS = {
    "03.1": (4, "32768", "4096", "10"),
    "03.2": (2, "M=45", "N=29", "K=64", lab_03.GUARD),
    "03.3": (1, "(16, 16)", "(4, 4)", lab_03.MACRO),
    "03.4": (4, "147456", "4096", "A[row * K + k]", "BT[col * K + k]", lab_03.BROUGHT),
    "03.5": (1, lab_03.TWO_ROWS),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("03.1", "tiles of a thread", 1, hints.OF_A_THREAD, ("__shared__ ", "")),
    (
        "03.1",
        "tiles without a size",
        1,
        hints.NO_DYNAMIC,
        (
            "__shared__ float A_tile[16][16], B_tile[16][16];",
            "extern __shared__ float A_tile[][16]; float (*B_tile)[16] = A_tile + 16;",
        ),
    ),
    ("03.1", "one warp works", 1, kernels.OWN, *ONE_WARP),
    (
        "03.2",
        "guards of C for both loads",
        2,
        lab_03.EDGE,
        ("row < M && k0 + x < K ?", "row < M && col < N ?"),
        ("k0 + y < K && col < N ?", "row < M && col < N ?"),
    ),
    ("03.3", "another TILE is refused", 4, "TILE=64", ("TILE <= 32", "TILE != 33")),
    (
        "03.3",
        "one warp without barriers",
        2,
        "racecheck",
        ("__syncthreads();", "if (TILE > 5) __syncthreads();"),
    ),
    ("03.1", "no first barrier", 1, "C[0, 0]", (FIRST, "        for")),
    ("03.1", "no first barrier: why", 1, "0", "`B_tile`", (FIRST, "for")),
    ("03.1", "no second barrier", 1, lab_03.BARRIERS, (SECOND, "    }")),
    (
        "03.1",
        "no second barrier: why",
        1,
        "racecheck",
        "11",
        (SECOND, "    }"),
    ),
    ("03.1", "tile of B turned", 1, lab_03.PLACES, ("B_tile[k][x]", "B_tile[x][k]")),
    ("03.1", "k0 forgotten", 1, "M=64", "N=64", "K=64", ("row * K + k0 + x", "row * K + x")),
    ("03.1", "stride of a square", 2, "M=32", "N=48", "K=64", ("row * K + k0", "row * N + k0")),
    ("03.1", "counts past the array", 1, lab_03.PLACES, ("k0 < K;", "k0 <= K;")),
    (
        "03.2",
        "early return",
        2,
        "M=45",
        "N=29",
        "K=64",
        ("    float sum", "    if (row >= M || col >= N) return;\n    float sum"),
    ),
    (
        "03.2",
        "early return: why",
        2,
        "synccheck",
        "14",
        ("    float sum", "    if (row >= M || col >= N) return;\n    float sum"),
    ),
    (
        "03.2",
        "barrier in a branch",
        2,
        lab_03.EDGE,
        (FIRST, "        if (row < M && col < N) __syncthreads();\n        for"),
    ),
    ("03.2", "no guard along K", 3, "M=64", "N=64", "K=67", (" && k0 + x < K", ""), ("k0 + y < K && ", "")),
    ("03.2", "no guard of the rows", 2, lab_03.GUARD, ("row < M && k0", "k0")),
    ("03.2", "guards exchanged", 2, lab_03.GUARD, ("row < M && k0 + x < K", "row < K && k0 + x < M")),
    ("03.2", "writes outside", 2, lab_03.GUARD, ("if (row < M && col < N)", "if (row < M)")),
    (
        "03.2",
        "past the edge what was there",
        3,
        lab_03.EDGE,
        (f"A_tile[y][x] = {A_TILE}", "if (row < M && k0 + x < K) A_tile[y][x] = A[row * K + k0 + x]"),
        (f"B_tile[y][x] = {B_TILE}", "if (k0 + y < K && col < N) B_tile[y][x] = B[(k0 + y) * N + col]"),
    ),
    ("03.3", "one 16 left", 1, lab_03.MACRO, ("k0 += TILE", "k0 += 16")),
    ("03.3", "no assertion", 4, "TILE=33", ("TILE <= 32", "TILE <= 64")),
    (
        "03.3",
        "an error of another kind",
        4,
        "TILE=33",
        ("static_assert(TILE >= 1 && TILE <= 32,", "static_assert(true,"),
    ),
    (
        "03.3",
        "refused by the preprocessor",
        4,
        "TILE=33",
        ("static_assert(TILE >= 1", "#if TILE > 32\n#error no\n#endif\nstatic_assert(TILE >= 1"),
        ("TILE <= 32,", "TILE <= 64,"),
    ),
    (
        "03.3",
        "no message",
        4,
        lab_03.ASSERT,
        ('"a block has TILE x TILE threads, at most 1024: choose 1 to 32"', '""'),
    ),
    (
        "03.3",
        "powers of two alone",
        1,
        "TILE=5",
        (
            "static_assert(TILE >= 1",
            'static_assert((TILE & (TILE - 1)) == 0, "2^n"); static_assert(TILE >= 1',
        ),
    ),
    ("03.3", "refuses too much", 1, ("TILE <= 32", "TILE <= 16")),
    (
        "03.4",
        "scattered loads into the tile",
        4,
        kernels.APART,
        ("B_tile[y][x] = b_row < N && k0 + x < K ? BT[b_row * K + k0 + x]", BT_SCATTERED),
        ("b_row = blockIdx.x * 16 + y", "b_row = col"),
    ),
    (
        "03.4",
        "the thread's own column",
        1,
        lab_03.OF_BT.usual,
        ("b_row = blockIdx.x * 16 + y", "b_row = col"),
    ),
    ("03.4", "the tile by column", 1, lab_03.OF_BT.usual, ("B_tile[x][k]", "B_tile[k][x]")),
    ("03.4", "no first barrier", 1, lab_03.BARRIERS, (FIRST, "        for")),
    ("03.4", "no second barrier", 1, "racecheck", (SECOND, "    }")),
    ("03.4", "guard of the column", 2, lab_03.BT_GUARD, ("b_row < N", "col < N")),
    (
        "03.4",
        "no zeros past K",
        2,
        lab_03.BT_GUARD,
        ("b_row < N && k0 + x < K", "b_row < N"),
    ),
    ("03.5", "one row", 1, lab_03.TWO_ROWS, ("    if (row + 8 < M && col < N)", "    if (false)")),
    (
        "03.5",
        "B read twice",
        5,
        "16384",
        "12288",
        ("float b = B_tile[k][x];", "volatile float* b = &B_tile[k][x];"),
        ("A_tile[y][k] * b", "A_tile[y][k] * *b"),
        ("A_tile[y + 8][k] * b", "A_tile[y + 8][k] * *b"),
    ),
    ("03.5", "neighbouring rows", 1, lab_03.TWO_ROWS, ("A_tile[y + 8][k]", "A_tile[y + 1][k]")),
    ("03.5", "half a tile", 1, lab_03.TWO_ROWS, ("h < 16", "h < 8")),
    ("03.5", "no second barrier", 1, "racecheck", (SECOND, "    }")),
    ("03.5", "one guard for both", 2, lab_03.GUARD, ("row + 8 < M && col", "row < M && col")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


def luckily_right():
    """The tiled product without its second barrier, in tiles of 4 x 4: a block is half a warp, all in
    step.
    """
    cell = mutant("03.1", (SECOND, "    }")).partition("\n")[2].replace("16", "4")
    return magic.compile_cell(cell, [], [], wanted="matmul")


def test_right_numbers_are_not_enough_and_a_race_is_told_with_both_lines():
    small, hints = Matmul(8, 8, 8), Hints("usual", race="wait for each other")
    right_on("", small, tile=4).test(luckily_right())
    with pytest.raises(Unmet) as unmet:
        no_finding(small, tile=4, hints=hints).test(luckily_right())
    assert str(unmet.value).splitlines() == [
        "matmul M=8 N=8 K=8 float32, grid (2, 2), block (4, 4)",
        "racecheck finds: line 11: race (write after read) on byte 0 of shared `A_tile`: the thread writes "
        "what another thread reads in line 15; no barrier lies between them",
        "    by thread (0, 0, 0) of block (0, 0, 0)",
        "      11 | A_tile[y][x] = A[row * K + k0 + x];",
        "      15 | sum += A_tile[y][k] * B_tile[k][x];",
        "wait for each other",
    ]


# exercise, how it differs, then what to replace in the solution: right, too
OTHERS = [
    (
        "03.1",
        "two pairs of tiles and one barrier a round",
        (SECOND, "    }"),
        ("A_tile[16][16], B_tile[16][16]", "A_tile[2][16][16], B_tile[2][16][16]"),
        *((used, used.replace("[", "[k0 / 16 % 2][")) for used in ("A_tile[y]", "B_tile[y]", "B_tile[k]")),
    ),
    ("03.1", "tile of A turned", ("A_tile[y][x] =", "A_tile[x][y] ="), ("A_tile[y][k]", "A_tile[k][y]")),
    ("03.1", "one array", *ONE_ARRAY),
    (
        "03.2",
        "zeros first",
        (
            f"A_tile[y][x] = {A_TILE}",
            "A_tile[y][x] = 0; if (row < M && k0 + x < K) A_tile[y][x] = A[row * K + k0 + x]",
        ),
        (
            f"B_tile[y][x] = {B_TILE}",
            "B_tile[y][x] = 0; if (k0 + y < K && col < N) B_tile[y][x] = B[(k0 + y) * N + col]",
        ),
    ),
    ("03.2", "the sum ends at K", ("k < 16;", "k < 16 && k0 + k < K;")),
    ("03.3", "side times side", ("TILE >= 1 && TILE <= 32", "TILE * TILE <= 1024")),
    (
        "03.3",
        "a constant",
        ("    __shared__", "    const int S = TILE;\n    __shared__"),
        ("k0 += TILE", "k0 += S"),
        ("k < TILE", "k < S"),
    ),
    ("03.4", "turned on the way in", ("B_tile[y][x]", "B_tile[x][y]"), ("B_tile[x][k]", "B_tile[k][x]")),
    (
        "03.4",
        "A_tile by column",
        ("A_tile[16][16]", "A_tile[16][17]"),
        ("A_tile[y][x]", "A_tile[x][y]"),
        ("A_tile[y][k]", "A_tile[k][y]"),
    ),
    (
        "03.5",
        "an array of sums",
        ("float upper = 0, lower = 0;", "float sum[2] = {};"),
        ("upper +=", "sum[0] +="),
        ("lower +=", "sum[1] +="),
        ("= upper;", "= sum[0];"),
        ("= lower;", "= sum[1];"),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)
