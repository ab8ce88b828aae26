"""Checks of notebook 03: what students start from and typical mistakes fail, with words that help."""

import pytest
from test_course import SOLVED, judged, mutant

from labkit.course import release

FIRST = "        __syncthreads();\n        for"
SECOND = "        __syncthreads();\n    }"
A_TILE = "row < M && k0 + x < K ? A[row * K + k0 + x] : 0"
B_TILE = "k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0"

STARTERS = {
    "03.1": ["✓ right where M, N and K differ", "32768 sectors; the goal is at most 4096", "10 | sum += A["],
    "03.2": ["✓ right where the tiles fit", "M=45 N=29 K=64", "C[0, 16] is nan", "Every thread of the block"],
    "03.3": ["grid (16, 16), block (4, 4)", "Does every 16 of the kernel say TILE?"],
}


@pytest.mark.parametrize("exercise", sorted(STARTERS))
def test_what_a_student_starts_from_fails_and_says_why(exercise):
    feedback = judged(exercise, release.without_solution(SOLVED[exercise]))
    assert not feedback.ok
    for words in STARTERS[exercise]:
        assert words in repr(feedback), feedback


# exercise, what is wrong, words of the answer, then what to replace in the solution
WRONG = [
    ("03.1", "no first barrier", "C[0, 0] is nan", (FIRST, "        for")),
    ("03.1", "no second barrier", "another between those reads and the stores", (SECOND, "    }")),
    ("03.1", "tile of B turned", "elements are wrong", ("B_tile[k][x]", "B_tile[x][k]")),
    ("03.1", "k0 forgotten", "matmul M=64 N=64 K=64", ("row * K + k0 + x", "row * K + x")),
    ("03.1", "stride of a square", "M=32 N=48 K=64", ("row * K + k0", "row * N + k0")),
    ("03.1", "counts past the array", "In the round of k0, thread (x, y)", ("k0 < K;", "k0 <= K;")),
    (
        "03.2",
        "early return",
        "M=45 N=29 K=64",
        ("    float sum", "    if (row >= M || col >= N) return;\n    float sum"),
    ),
    (
        "03.2",
        "barrier in a branch",
        "__syncthreads() inside a branch",
        (FIRST, "        if (row < M && col < N) __syncthreads();\n        for"),
    ),
    ("03.2", "no guard along K", "M=64 N=64 K=67", (" && k0 + x < K", ""), ("k0 + y < K && ", "")),
    ("03.2", "no guard of the rows", "the row of A with M", ("row < M && k0", "k0")),
    ("03.2", "guards exchanged", "the row of A with M", ("row < M && k0 + x < K", "row < K && k0 + x < M")),
    ("03.2", "writes outside", "invalid global write", ("if (row < M && col < N)", "if (row < M)")),
    (
        "03.2",
        "past the edge what was there",
        "what lies past the edge of A or B is 0",
        (f"A_tile[y][x] = {A_TILE}", "if (row < M && k0 + x < K) A_tile[y][x] = A[row * K + k0 + x]"),
        (f"B_tile[y][x] = {B_TILE}", "if (k0 + y < K && col < N) B_tile[y][x] = B[(k0 + y) * N + col]"),
    ),
    ("03.3", "one 16 left", "Does every 16", ("k0 += TILE", "k0 += 16")),
    ("03.3", "no assertion", "With TILE=33 the cell compiles", ("TILE <= 32", "TILE <= 64")),
    (
        "03.3",
        "an error of another kind",
        "With TILE=33",
        ("static_assert(TILE >= 1 && TILE <= 32,", "static_assert(true,"),
    ),
    ("03.3", "refuses too much", "static assertion failed", ("TILE <= 32", "TILE <= 16")),
]


@pytest.mark.parametrize(
    ("exercise", "replacements", "words"),
    [(exercise, changes, words) for exercise, _, words, *changes in WRONG],
    ids=[f"{exercise} {what}" for exercise, what, *_ in WRONG],
)
def test_a_typical_mistake_is_told_in_words_that_help(exercise, replacements, words):
    feedback = judged(exercise, mutant(exercise, *replacements))
    assert not feedback.ok
    assert words in feedback.failure, feedback
