"""Checks of notebook 10: a product launched by its own line; a goal is missed for the reason that is told."""

import pandas as pd
import pytest
from course_tables import (
    SOLVED,
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
    judged,
    mutant,
)

from labkit.course import magic
from labkit.course.criteria import hints, products
from labkit.course.criteria.products import faster, in_registers, warps
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_10
from labkit.course.feedback import MET
from labkit.devices.select import NoGpu
from labkit.figures import own_product

UNCHANGED = "Nothing has changed: is the output written?"
STARTERS = {
    "10.1": (2, "(0, 0)", "3", "(16, 16)", "16", products.ROUND_UP),
    "10.2": 1,
    "10.3": 1,
    "10.4": 1,
    "10.5": 1,
    "10.6": 1,
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


FIRST, SECOND = "        __syncthreads();\n        ", "        __syncthreads();\n    }\n"
GRID_1 = "grid (ceil(N/32), ceil(M/8))"
PLACE_1 = """int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
"""
GUARD_1 = "if (row >= M || col >= N)\n        return;"
UNREACHED = "do the threads, or the loops, reach all of it?"

# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("10.1", "no launch line", 1, ("// launch:", "// start:")),
    (
        "10.1",
        "two of them",
        1,
        "3",
        "14",
        ("    float result", "    // launch: block (1), grid (1);\n    float result"),
    ),
    ("10.1", "rounds down", 2, products.ROUND_UP, (GRID_1, "grid (N/32, M/8)")),
    ("10.1", "rounds down, but never to 0", 1, products.COVER, (GRID_1, "grid (N/33 + 1, M/9 + 1)")),
    ("10.1", "x for rows", 1, products.COVER, (GRID_1, "grid (ceil(M/8), ceil(N/32))")),
    ("10.1", "a grid for one size", 1, "M=128", "N=64", "K=32", (GRID_1, "grid (2, 8)")),
    ("10.1", "a grid for the largest of the table", 3, "M=1100", "N=1", "K=2", (GRID_1, "grid (8, 32)")),
    ("10.1", "no such macro", 1, (GRID_1, "grid (ceil(N/TILE), ceil(M/8))")),
    ("10.1", "no guard", 3, products.GUARD, ("row >= M || col >= N", "false")),
    ("10.1", "strides of a square", 1, "M=128", "N=64", "K=32", ("row * K + k", "row * N + k")),
    ("10.1", "alpha forgotten", 4, hints.NO_ALPHA, ("alpha * sum", "sum")),
    ("10.1", "reads C always", 1, products.UNREAD, ("if (beta != 0)", "")),
    (
        "10.1",
        "blocks that overlap",
        4,
        products.OWNER,
        ("blockIdx.x * blockDim.x", "blockIdx.x * 16"),
        (GRID_1, "grid (ceil(N/16), ceil(M/8))"),
    ),
    (
        "10.2",
        "a tile of 16",
        2,
        "64",
        "128",
        ("TILE 32", "TILE 16"),
    ),
    (
        "10.2",
        "A past its tile",
        2,
        products.SQUARE,
        ("A_tile[y][k] *", "(row < M && k0 + k < K ? A[row * K + k0 + k] : 0) *"),
    ),
    (
        "10.2",
        "a turned tile",
        4,
        "10",
        ("B_tile[y][x] =", "B_tile[x][y] ="),
        ("B_tile[k][x]", "B_tile[x][k]"),
    ),
    (
        "10.2",
        "x for rows",
        2,
        products.SQUARE,
        ("x = threadIdx.x, y = threadIdx.y", "x = threadIdx.y, y = threadIdx.x"),
    ),
    ("10.2", "no second barrier", 1, products.BARRIERS, (SECOND, "    }\n")),
    (
        "10.2",
        "early return",
        1,
        products.ARRIVE,
        ("    float sum", "    if (row >= M || col >= N) return;\n    float sum"),
    ),
    ("10.2", "no guard along K", 1, products.GUARD, (" && k0 + x < K", "")),
    (
        "10.3",
        "2 x 2 elements",
        3,
        "1",
        "0.5",
        *((" 64", " 32"), ("[64]", "[32]"), ("/64", "/32"), ("< 4;", "< 2;"), ("[4][4]", "[2][2]")),
    ),
    (
        "10.3",
        "every fourth element",
        5,
        products.PADDING,
        ("B_tile[k][x + 16 * j]", "B_tile[k][4 * x + j]"),
        ("i, col = col0 + 16 * j", "i, col = col0 + 3 * x + j"),
    ),
    ("10.3", "no first barrier", 1, products.BARRIERS, (FIRST, "        ")),
    ("10.3", "beta forgotten", 1, hints.NO_OLD, (" + (beta != 0 ? beta * C[row * N + col] : 0)", "")),
    ("10.4", "rows of 65", 1, products.ALIGNED, ("TILE_M + 4", "TILE_M + 1")),
    ("10.4", "rows of 64", 5, products.PADDING, ("TILE_M + 4", "TILE_M")),
    ("10.4", "no second barrier", 1, products.BARRIERS, (SECOND, "    }\n")),
    ("10.5", "launched for another tile", 1, products.COVER, ("ceil(M/TILE_M)", "ceil(M/256)")),
    ("10.5", "no guard", 1, products.GUARD, ("if (row < M && col < N)", "if (row < M)")),
    ("10.5", "rows of another thread", 1, products.OWNER, ("i % 4 + i / 4 * 64", "i")),
    (
        "10.6",
        "a tile that makes few blocks",
        3,
        lab_10.MORE_BLOCKS,
        ("TILE_M 32", "TILE_M 128"),
    ),
    ("10.6", "loops that are kept", 3, lab_10.MORE_BLOCKS, ("#pragma unroll", "#pragma unroll 1")),
    ("10.6", "the tile of the round before", 1, products.MAPPING, ("load(k0 + 16)", "load(k0)")),
    ("10.6", "no guard along K", 1, products.GUARD, (" && k0 + x < K", "")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


# exercise, how it differs, then what to replace in the solution
OTHERS = [
    ("10.1", "rounds up as C does", (GRID_1, "grid ((N + 31) / 32, (M - 1) / 8 + 1)")),
    (
        "10.1",
        "one dimension",
        ("block (32, 8), " + GRID_1, "block (256), grid (ceil(M*N/256))"),
        (PLACE_1, "int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / N, col = i % N;\n"),
        ("row >= M || col >= N", "i >= M * N"),
    ),
    ("10.2", "padded", ("B_tile[TILE][TILE];", "B_tile[TILE][TILE + 1];")),
    ("10.3", "reads of four neighbours", (SOLVED["10.3"], SOLVED["10.4"])),
    ("10.4", "more elements per thread", (SOLVED["10.4"], SOLVED["10.5"])),
    ("10.5", "wide rather than high", ("TILE_M 128", "TILE_M 64"), ("TILE_N 64", "TILE_N 128")),
    ("10.6", "high rather than wide", ("TILE_M 32", "TILE_M 64"), ("TILE_N 64", "TILE_N 32")),
]


test_a_different_right_answer_passes = checks_of_other_answers(OTHERS)


@pytest.mark.parametrize(
    ("exercise", "before"),
    [
        ("10.2", "10.1"),
        ("10.3", "10.2"),
        ("10.4", "10.3"),
        ("10.5", "10.4"),
        ("10.6", "10.4"),
        ("10.6", "10.5"),
    ],
)
def test_the_answer_before_is_right_and_not_yet_enough(exercise, before):
    feedback = judged(exercise, SOLVED[before])
    assert not feedback.ok and feedback.lines[0].state == MET
    assert "the goal is" in feedback.failure


def altered(*replacements):
    """The kernel of 10.1 with parts replaced."""
    cell = mutant("10.1", *replacements).partition("\n")[2]
    return magic.compile_cell(cell, [], [], wanted="matmul")


ONE_SUM = """    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    float result"""
MANY_SUMS = """    float sum = 0, s[48] = {};
    for (int k = 0; k < K; k += 48)
        for (int i = 0; i < 48; ++i)
            if (k + i < K) s[i] += A[row * K + k + i] * B[(k + i) * N + col];
    for (int i = 0; i < 48; ++i)
        sum += s[i];
    float result"""


def test_registers_that_are_spilled_are_no_array():
    bounds = ("__global__ void", "__global__ void __launch_bounds__(1024, 2)")
    kernel = altered(bounds, (ONE_SUM, MANY_SUMS))
    with pytest.raises(Unmet, match="No array lies there"):
        in_registers().test(kernel)


def test_local_memory_is_told():
    kernel = altered(("float sum = 0;", "volatile float sum = 0;"))
    with pytest.raises(Unmet, match="Each thread has 8 bytes of local memory"):
        in_registers().test(kernel)


def test_few_warps_are_told():
    """A block of one warp with 40 KB of shared memory: the SM of an H200 has room for five."""
    kept = "__shared__ volatile char kept[40000]; kept[threadIdx.x] = 1;"
    kernel = altered(
        ("block (32, 8), " + GRID_1, "block (32), grid (ceil(N/32), M)"), (GUARD_1, f"{kept}\n    {GUARD_1}")
    )
    with pytest.raises(
        Unmet, match="5 blocks, 5 of 64 warps, limited by shared_mem; the goal is at least 16"
    ):
        warps(16).test(kernel)


class TestFaster:
    """The criterion of speed, with times in the place of a GPU's."""

    def judge(self, monkeypatch, mine, theirs, wrong=""):
        rows = [("yours", mine), ("tiled", theirs)][bool(wrong) :]
        times = pd.DataFrame(rows, columns=["kernel", "value"])
        monkeypatch.setattr("labkit.course.criteria.products.find_gpu", lambda: None)
        monkeypatch.setattr(own_product, "measured", lambda *_: (times, wrong))
        faster("tiled", 2.5).test(None)

    def test_fast_enough(self, monkeypatch):
        self.judge(monkeypatch, 1, 2.5)

    def test_too_slow(self, monkeypatch):
        words = "yours takes 1 ms and tiled 2 ms: it is 2 times as fast, and the goal is 2.5 times"
        with pytest.raises(Unmet, match=words):
            self.judge(monkeypatch, 1, 2)

    def test_wrong_on_the_gpu(self, monkeypatch):
        with pytest.raises(Unmet, match="C is wrong"):
            self.judge(monkeypatch, 1, 3, wrong="C is wrong")

    def test_without_a_gpu(self, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        with pytest.raises(NoGpu):
            faster("tiled", 2.5).test(None)
