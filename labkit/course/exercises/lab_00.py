"""Exercises of 00_start_here: threads and the elements they work on."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from labkit.course.criteria.hints import Hints
from labkit.course.criteria.kernels import Shares, case, other_blocks, right_in, shared_out
from labkit.course.criteria.launches import Given, Launch, all_of
from labkit.course.exercise import Criterion, Exercise, criterion
from labkit.course.fresh_inputs import FACTORS, one_of, sizes
from simt import AnyKernel
from simt.common.compare import compare

THREADS = 256  # of a block, for vectors
SIDE = 16  # of a square block, for matrices


@dataclass(frozen=True)
class Scaled:
    """The arguments (x, a, n) of a kernel that multiplies each of n elements by `a`, in place."""

    n: int
    a: np.float32
    seed: int
    reads_output: ClassVar = True

    def args(self, xp: Any = np) -> tuple[Any, ...]:
        """Make fresh arguments."""
        x = np.random.default_rng(self.seed).uniform(-1, 1, self.n).astype(np.float32)
        return xp.array(x), self.a, np.int32(self.n)

    def output(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return x among the arguments."""
        return args[0]

    def verify(self, got: np.ndarray) -> None:
        """Raise Mismatch unless each element is scaled."""
        before = self.args()[0]
        compare("x", got, before, self.a * before, np.zeros(self.n))

    def __str__(self) -> str:
        return f"n={self.n}"


def _scaling(n: int, a: np.float32) -> Launch:
    return Launch(Scaled(n, a, n), (-(-n // THREADS),), (THREADS,))


_SCALES = Shares(lambda _: _scaling(8 * THREADS, np.float32(1.5)), factor=4)  # a thread may take a float4


@criterion("every element is scaled once, for n = {lengths}")
def _scaled(kernel: AnyKernel, *lengths: int, hint: str = "") -> None:
    a = np.float32(one_of(3, FACTORS))
    for (n,) in sizes([(n,) for n in lengths], THREADS):
        with case(f"n={n}: {-(-n // THREADS) * THREADS} threads", hint):
            _scaling(n, a).run(kernel)
    _SCALES.ask(kernel)


def _numbers_of(rows: int, cols: int, _: np.random.Generator) -> tuple[np.ndarray]:
    """Return what 00.2 asks for: nothing of it is drawn."""
    return (1000 * np.arange(rows, dtype=np.int32)[:, None] + np.arange(cols, dtype=np.int32),)


def _numbering(rows: int, cols: int, x: int = SIDE, y: int = SIDE) -> Launch:
    given = Given(f"rows={rows}, cols={cols}", partial(_numbers_of, rows, cols), (rows, cols))
    return Launch(given, (-(-cols // x), -(-rows // y)), (x, y))


_PLACES = Shares(lambda _: _numbering(3 * SIDE, 3 * SIDE))


def _numbered(text: str, *shapes: tuple[int, int]) -> Criterion:
    """Ask for right numbers in matrices of these shapes."""
    return shared_out(right_in(text, all_of(_numbering, *shapes, whole=SIDE), NUMBERED), _PLACES)


ROWS = "Whole rows come before an element, each as long as there are columns."
OUTSIDE = (
    "A thread whose row or column is outside the matrix must do nothing, and no other: compare row with rows "
    "and col with cols."
)
NUMBERED = Hints(
    *(ROWS, ROWS, ROWS),
    guard=OUTSIDE,
    untouched="x counts columns and y counts rows: col comes from blockIdx.x and threadIdx.x, row from "
    f"blockIdx.y and threadIdx.y. {OUTSIDE}",
    by_place=True,
)

EXERCISES = (
    Exercise("00.1", "Scale a vector of any length", 1, given=1).asks(
        _scaled(THREADS, 2 * THREADS),
        _scaled(1, 31, 33, 1000, hint="A thread without an element must do nothing."),
    ),
    Exercise("00.2", "From row and column to an index", 2).asks(
        _numbered("right for a square matrix that the blocks cover exactly", (32, 32)),
        _numbered("right for wide and tall matrices", (16, 48), (48, 16)),
        other_blocks(
            _numbered("right where the blocks stick out", (1, 1), (31, 33), (45, 29), (101, 7)),
            *(_numbering(*shape, *block) for shape in ((48, 64), (19, 21)) for block in ((32, 8), (8, 32))),
        ),
    ),
)
