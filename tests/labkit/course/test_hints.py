"""Messages: what was seen of a failed launch, and a hint only where its own test says that it applies."""

import pytest
from course_tables import failed_criterion, judged, mutant
from test_course_complete import WORDS, sentences

from labkit.course.criteria import hints, kernels, products
from labkit.course.criteria.hints import missing_terms
from labkit.course.exercises import lab_02, lab_05, lab_08, lab_09

SUM = "for (int k = 0; k < K; ++k)"
SCALED = "if (beta != 0)\n        result += beta * C[row * N + col];"
A_TILE, B_TILE = "A_tile[y][x] = A[row * K + k0 + x]", "B_tile[y][x] = B[(k0 + y) * N + col]"
SLANTED = "A_tile[x][y] = A[(row - y + x) * K + k0 + y]", "B_tile[x][y] = B[(k0 + x) * N + col - x + y]"

# exercise, the mistake, the criterion that fails, the end of the message, and what to replace in the solution
MISTAKES = [
    (
        "02.1",
        "the sum ends early",
        1,
        missing_terms(1, 16, False),
        (SUM, SUM.replace("k < K", "k < K - 1")),
    ),
    (
        "02.2",
        "the sum begins late",
        1,
        missing_terms(2, 64, True),
        (SUM, SUM.replace("k = 0", "k = 2")),
    ),
    (
        "03.2",
        "rounds of K rounded down",
        3,
        missing_terms(3, 67, False),
        ("k0 < K;", "k0 + 15 < K;"),
    ),
    (
        "02.1",
        "rows of another length",
        2,
        f"{hints.WRONG_ROWS_OF_A.format('N')}\n{lab_02.MAPPING}",
        ("A[row * K", "A[row * N"),
    ),
    (
        "02.3",
        "alpha forgotten where beta is 0",
        3,
        hints.NO_ALPHA,
        ("float result = alpha * sum;", "float result = beta != 0 ? alpha * sum : sum;"),
    ),
    (
        "02.3",
        "C is read too early",
        3,
        lab_02.UNREAD,
        (
            "float result = alpha * sum;",
            "float old = C[row * N + col]; float result = alpha * sum + (beta != 0 ? 0 : old * 0);",
        ),
    ),
    (
        "02.2",
        "a column is dropped",
        1,
        f"in column 47 of 32 x 48.\n{lab_02.GUARDED.untouched}",
        ("col >= N", "col >= N - 1"),
    ),
    (
        "03.1",
        "no request is coalesced",
        4,
        kernels.APART,
        (A_TILE, SLANTED[0]),
        (B_TILE, SLANTED[1]),
    ),
    (
        "06.2",
        "a row of the tile for a column",
        1,
        hints.COLUMNS_OF_B,
        ("B_tile[k][x]", "B_tile[x][k]"),
    ),
    (
        "08.2",
        "half of the tiles is filled",
        1,
        lab_08.FILLED,
        ("i < 32 * 8; i += blockDim.x", "i < 16 * 8; i += blockDim.x"),
    ),
    (
        "08.3",
        "a store past the end of a row",
        2,
        lab_08.FOUR.out_of_bounds,
        ("            if (col + j < N)\n                C", "                C"),
    ),
    (
        "09.1",
        "threads without an element count",
        2,
        lab_09.PADDED,
        ("i < n ? in[i] : 0", "i < n ? in[i] : 1"),
    ),
    (
        "09.2",
        "a root of less than 0",
        1,
        "NaN to 256 of them.",
        ("(left + right", "(sqrtf(-1.0f - rows) + left + right"),
    ),
    (
        "03.2",
        "two fills of one element",
        1,
        hints.TWICE,
        ("A_tile[y][x] =", "A_tile[y / 2][x] ="),
    ),
    (
        "04.3",
        "misaligned",
        1,
        hints.MISALIGNED,
        ("(particles)[i]", "(particles + 1)[i]"),
    ),
    (
        "10.1",
        "NaN is written",
        1,
        "NaN to 4096 of them.",
        ("float result = alpha * sum;", "float result = alpha * sum / 0 * 0;"),
    ),
    (
        "02.1",
        "a sum of integers",
        1,
        hints.NO_TERM,
        ("float sum = 0", "int sum = 0"),
    ),
    (
        "02.1",
        "adds to C",
        1,
        lab_02.EMPTY,
        ("C[row * N + col] = sum", "C[row * N + col] += sum"),
    ),
    ("02.3", "beta with another sign", 1, lab_02.BLAS, ("result += beta", "result -= beta")),
    (
        "05.1",
        "guards exchanged",
        1,
        lab_05.EDGE,
        ("out_row < cols && out_col < rows", "out_row < rows && out_col < cols"),
    ),
    (
        "05.4",
        "everyone writes the sum",
        1,
        lab_05.ADDING.owner,
        ("    if (t == 0)\n", ""),
        ("= part[0]", "= part[t]"),
    ),
    (
        "10.1",
        "a grid for the transpose",
        1,
        f"rows 64 to 127 of 128 x 64.\n{products.COVER}",
        ("block (32, 8), grid (ceil(N/32), ceil(M/8))", "block (16, 16), grid (ceil(M/16), ceil(N/16))"),
    ),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_message_leads_to_the_mistake_and_not_elsewhere(case):
    exercise, _, criterion, end, *replacements = case
    feedback = judged(exercise, mutant(exercise, *replacements))
    assert failed_criterion(feedback) == criterion
    assert feedback.failure.endswith(end), feedback
    before = feedback.failure.removesuffix(end)
    assert not [each for each in sentences() if WORDS.search(each) and each in before], feedback
