"""Exercises of 00_start_here: threads and the elements they work on."""

import numpy as np

from labkit.core.compare import compare
from labkit.course.criteria.kernels import case
from labkit.course.criteria.launches import Given, Launch
from labkit.course.drawn import FACTORS, fresh, one_of, sizes
from labkit.course.exercise import Exercise, criterion
from labkit.simt import AnyKernel

THREADS = 256  # of a block, for vectors
SIDE = 16  # of a square block, for matrices


@criterion("every element is scaled once, for n = {lengths}")
def _scaled(kernel: AnyKernel, *lengths: int, hint: str = "") -> None:
    a = np.float32(one_of(3, FACTORS))
    for (n,) in sizes([(n,) for n in lengths], THREADS):
        x = np.random.default_rng(fresh(n)).uniform(-1, 1, n).astype(np.float32)
        before, blocks = x.copy(), -(-n // THREADS)
        with case(f"n={n}: {blocks * THREADS} threads", hint):
            kernel(blocks, THREADS, (x, a, np.int32(n)))
            compare("x", x, before, a * before, np.zeros(n))


@criterion("{text}")
def _numbered(kernel: AnyKernel, text: str, *shapes: tuple[int, int], hint: str = "") -> None:
    for rows, cols in sizes(shapes, SIDE):
        expected = 1000 * np.arange(rows, dtype=np.int32)[:, None] + np.arange(cols, dtype=np.int32)
        given = Given(f"rows={rows}, cols={cols}", (), (rows, cols), expected)
        launch = Launch(given, (-(-cols // SIDE), -(-rows // SIDE)), (SIDE, SIDE))
        args = launch.args()
        with case(str(launch), hint):
            kernel(launch.grid, launch.block, args)
            launch.verify(args)


EXERCISES = (
    Exercise("00.1", "Scale a vector of any length", 1, given=1).asks(
        _scaled(THREADS, 2 * THREADS),
        _scaled(1, 31, 33, 1000, hint="A thread without an element must do nothing."),
    ),
    Exercise("00.2", "From row and column to an index", 2).asks(
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
)
