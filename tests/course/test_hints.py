"""Messages: what was seen of a failed launch, and a hint only where its own test says that it applies."""

import pytest
from course_tables import judged, mutant

SUM = "for (int k = 0; k < K; ++k)"
SCALED = "if (beta != 0)\n        result += beta * C[row * N + col];"
A_TILE, B_TILE = "A_tile[y][x] = A[row * K + k0 + x]", "B_tile[y][x] = B[(k0 + y) * N + col]"
SLANTED = "A_tile[x][y] = A[(row - y + x) * K + k0 + y]", "B_tile[x][y] = B[(k0 + x) * N + col - x + y]"

# exercise, the mistake, the end of the message, what it must not say, and what to replace in the solution
MISTAKES = [
    (
        "02.1",
        "the sum ends early",
        "The sum ends early: the last term is missing.",
        "x counts",
        (SUM, SUM.replace("k < K", "k < K - 1")),
    ),
    (
        "02.2",
        "the sum begins late",
        "begins late: the first 2 of 64 terms are missing.",
        "outside",
        (SUM, SUM.replace("k = 0", "k = 2")),
    ),
    (
        "03.2",
        "rounds of K rounded down",
        "the last 3 of 67 terms are missing.",
        "edge",
        ("k0 < K;", "k0 + 15 < K;"),
    ),
    (
        "02.1",
        "rows of another length",
        "Row i of A is taken from index i * N; it begins at i * K.",
        "Nothing",
        ("A[row * K", "A[row * N"),
    ),
    (
        "02.3",
        "alpha forgotten where beta is 0",
        "alpha has no effect: it should scale the sum.",
        "NaN",
        ("float result = alpha * sum;", "float result = beta != 0 ? alpha * sum : sum;"),
    ),
    (
        "02.3",
        "C is read too early",
        "With beta = 0 the kernel must not read C",
        "outside C",
        (
            "float result = alpha * sum;",
            "float old = C[row * N + col]; float result = alpha * sum + (beta != 0 ? 0 : old * 0);",
        ),
    ),
    (
        "02.2",
        "a column is dropped",
        "All wrong elements are in column 47 of 32 x 48.\nA thread outside C",
        "x counts",
        ("col >= N", "col >= N - 1"),
    ),
    (
        "03.1",
        "no request is coalesced",
        "ask for elements that lie apart",
        "once per block",
        (A_TILE, SLANTED[0]),
        (B_TILE, SLANTED[1]),
    ),
    (
        "06.2",
        "a row of the tile for a column",
        "Columns of B are taken for its rows.",
        "past the edge",
        ("B_tile[k][x]", "B_tile[x][k]"),
    ),
    (
        "08.2",
        "half of the tiles is filled",
        "All threads together fill both tiles in every round, past the edges of A and B with 0.",
        "Which rows",
        ("i < 32 * 8; i += blockDim.x", "i < 16 * 8; i += blockDim.x"),
    ),
    (
        "08.3",
        "a store past the end of a row",
        "each of the four columns, col + j, with N.",
        "16 bytes",
        ("            if (col + j < N)\n                C", "                C"),
    ),
    (
        "09.1",
        "threads without an element count",
        "adds a 0 in the tree, and writes nothing.",
        "step before",
        ("i < n ? in[i] : 0", "i < n ? in[i] : 1"),
    ),
    (
        "09.2",
        "a root of less than 0",
        "The kernel has written NaN to 256 of them.",
        "neighbour",
        ("(left + right", "(sqrtf(-1.0f - rows) + left + right"),
    ),
    (
        "03.2",
        "two fills of one element",
        "Two threads write the same element",
        "barrier in",
        ("A_tile[y][x] =", "A_tile[y / 2][x] ="),
    ),
    (
        "04.3",
        "misaligned",
        "wants an address that is a multiple",
        "without a particle",
        ("(particles)[i]", "(particles + 1)[i]"),
    ),
    (
        "10.1",
        "NaN is written",
        "The kernel has written NaN to",
        "is the output written?",
        ("float result = alpha * sum;", "float result = alpha * sum / 0 * 0;"),
    ),
    (
        "02.1",
        "a sum of integers",
        "256 of 256 elements are wrong",
        "ends early",
        ("float sum = 0", "int sum = 0"),
    ),
    (
        "02.1",
        "adds to C",
        "add up in a variable",
        "beta",
        ("C[row * N + col] = sum", "C[row * N + col] += sum"),
    ),
    ("02.3", "beta with another sign", "alpha=1 beta=1", "outside C", ("result += beta", "result -= beta")),
    (
        "05.1",
        "guards exchanged",
        "two guards",
        "Which element",
        ("out_row < cols && out_col < rows", "out_row < rows && out_col < cols"),
    ),
    (
        "05.4",
        "everyone writes the sum",
        "One thread of a block writes",
        "barrier, and",
        ("    if (t == 0)\n", ""),
        ("= part[0]", "= part[t]"),
    ),
    (
        "10.1",
        "a grid for the transpose",
        "rows 64 to 127 of 128 x 64.\nThe blocks of the launch line must cover C",
        "Row i",
        ("block (32, 8), grid (ceil(N/32), ceil(M/8))", "block (16, 16), grid (ceil(M/16), ceil(N/16))"),
    ),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_message_leads_to_the_mistake_and_not_elsewhere(case):
    exercise, _, words, elsewhere, *replacements = case
    feedback = judged(exercise, mutant(exercise, *replacements))
    assert not feedback.ok
    assert words in feedback.failure and elsewhere not in feedback.failure, feedback
