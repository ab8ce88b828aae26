"""Exercises of 00_start_here: threads and the elements they work on."""

import numpy as np

from labkit import simt
from labkit.core.compare import compare, unwritten
from labkit.course.criteria.kernels import case
from labkit.course.drawn import FACTORS, fresh, one_of, sizes
from labkit.course.exercise import Criterion, Exercise

THREADS = 256  # of a block, for vectors
SIDE = 16  # of a square block, for matrices


def _scaled(*lengths: int, hint: str = "") -> Criterion:
    def test(kernel: simt.AnyKernel) -> None:
        a = np.float32(one_of(3, FACTORS))
        for (n,) in sizes([(n,) for n in lengths], THREADS):
            x = np.random.default_rng(fresh(n)).uniform(-1, 1, n).astype(np.float32)
            before, blocks = x.copy(), -(-n // THREADS)
            with case(f"n={n}: {blocks * THREADS} threads", hint):
                kernel(blocks, THREADS, (x, a, np.int32(n)))
                compare("x", x, before, a * before, np.zeros(n))

    return Criterion(f"every element is scaled once, for n = {', '.join(map(str, lengths))}", test)


def _numbered(text: str, *shapes: tuple[int, int], hint: str = "") -> Criterion:
    def test(kernel: simt.AnyKernel) -> None:
        for rows, cols in sizes(shapes, SIDE):
            out, grid = unwritten((rows, cols), "int32"), (-(-cols // SIDE), -(-rows // SIDE))
            before, expected = out.copy(), 1000 * np.arange(rows)[:, None] + np.arange(cols)
            with case(f"rows={rows}, cols={cols}, grid {grid}, block {(SIDE, SIDE)}", hint):
                kernel(grid, (SIDE, SIDE), (out, np.int32(rows), np.int32(cols)))
                compare("out", out, before, expected, np.zeros((rows, cols)))

    return Criterion(text, test)


EXERCISES = (
    Exercise(
        "00.1",
        "Scale a vector of any length",
        1,
        (
            _scaled(THREADS, 2 * THREADS),
            _scaled(1, 31, 33, 1000, hint="A thread without an element must do nothing."),
        ),
        given=1,
    ),
    Exercise(
        "00.2",
        "From row and column to an index",
        2,
        (
            _numbered("right for a square matrix that the blocks cover exactly", (32, 32)),
            _numbered(
                "right for wide and tall matrices",
                (16, 48),
                (48, 16),
                hint="Whole rows come before an element, each as long as there are columns. "
                "Compare row with rows and col with cols.",
            ),
            _numbered(
                "right where the blocks stick out",
                (1, 1),
                (31, 33),
                (45, 29),
                hint="A thread whose row or column is outside the matrix must do nothing.",
            ),
        ),
    ),
)
