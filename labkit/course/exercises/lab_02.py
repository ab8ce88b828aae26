"""Exercises of 02_naive_cuda: the matrix product with one thread per element of C, and a test of results."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import (
    SOUND,
    Hints,
    Shares,
    at_most,
    no_finding,
    no_finding_in,
    profiled,
    right_in,
    right_on,
    shared_out,
)
from labkit.course.criteria.launches import Launch, Launches, tiled
from labkit.course.criteria.python import called, number_of, right_for, shown
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from simt import AnyKernel
from simt.counters.profile import loads

MAPPING = (
    "x counts columns of C and y counts rows. Row i of A begins at index i * K, row k of B at k * N, "
    "row i of C at i * N."
)
WITHIN_K = f"{MAPPING} k counts from 0 to K - 1."
GUARD = "A thread outside C must neither read nor write: compare row with M and col with N."
OWNER = "Each element of C is the work of one thread alone. Is its index right, with N elements per row?"
UNREAD = "With beta = 0 the kernel must not read C: nothing was put there, and 0 * NaN is NaN."
SUM_UP = (
    "One thread computes an element of C: it adds up in a variable, and writes it to C once, behind the loop."
)
EMPTY = "C holds nothing before the kernel writes to it: add up in a variable of the thread."
BLAS = "C[row, col] becomes alpha times the sum plus beta times what it held before, and is written once."
MAPPED = Hints(MAPPING, WITHIN_K, OWNER, unread=EMPTY)
GUARDED = Hints(
    "",
    WITHIN_K,
    OWNER,
    unread=EMPTY,
    guard=GUARD,
    untouched=f"{GUARD} And does col come from blockIdx.x and threadIdx.x, row from the two y?",
    by_place=True,
)
SCALED = replace(GUARDED, usual=BLAS, unread=UNREAD)
SMALL = Matmul(33, 20, 17)
EXACT = Matmul(32, 48, 64)  # for blocks of 16 x 16
# The last has more terms than a byte counts.
RAGGED = [
    Matmul(*size) for size in ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67), (20, 70, 5), (3, 5, 301))
]

# Three times three blocks; a thread loads a row of A and a column of B.
SHARED = Matmul(48, 48, 48)
SHARES = Shares(
    lambda _: tiled(SHARED),
    loads=4 * SHARED.M * SHARED.N * SHARED.K,
    beside="x counts columns of C: neighbours along threadIdx.x have neighbouring elements of a row.",
)


# 02.4: a block is 256 threads along x, and covers 8 rows and 32 columns of C.


def _in_a_row(problem: Matmul) -> Launch:
    return Launch(problem, (-(-problem.N // 32), -(-problem.M // 8)), (256,))


def _in_rows(*stated: Matmul) -> Launches:
    return lambda _: [_in_a_row(problem) for problem in fresh_inputs.problems(stated, longer=True)]


NUMBERED = (
    "threadIdx.x runs from 0 to 255. The block's 8 rows of C begin at blockIdx.y * 8, its 32 columns at "
    "blockIdx.x * 32: each thread needs a row of the 8 and a column of the 32, and no two the same pair."
)
OF_A_ROW = Hints(NUMBERED, WITHIN_K, NUMBERED, unread=EMPTY, guard=GUARD, untouched=NUMBERED, fits=32)

IN_A_ROW = Matmul(16, 64, 16)  # two times two blocks
IN_A_ROW_SHARES = Shares(
    lambda _: _in_a_row(IN_A_ROW), loads=4 * IN_A_ROW.M * IN_A_ROW.N * IN_A_ROW.K, once=OWNER
)

CUBE = Matmul(64, 64, 64)


def _counted() -> Matmul:
    """Return the product for which requests are counted."""
    return fresh_inputs.problem_instead(CUBE, 32)


def _most_requests(problem: Matmul) -> int:
    """Return two loads per multiply-add, 32 lanes per request; and as many again."""
    return 2 * 2 * problem.K * problem.M * problem.N // 32


@criterion(f"at most {_most_requests(CUBE):,} requests to load, for M = N = K = 64")
def _all_lanes_work(kernel: AnyKernel) -> None:
    """Ask for few requests: few sectors per request are no gain where most lanes of a warp are idle."""
    problem = _counted()
    requests = int(loads(profiled(kernel, _in_a_row(problem)).lines, "global").requests.sum())
    if requests > (most := _most_requests(problem)):
        raise Unmet(
            f"{problem}: warps load {requests:,} times; the goal is at most {most:,}\n"
            "Each thread should have an element of C to compute, so that a request serves 32 of them."
        )


# 02.5: a test of results.

UNIT = 2.0**-24  # half the distance from 1 to the next float32
ROUNDED = "the products and sums are rounded to float32, and nothing else is wrong"
FORGOTTEN = "the last term of one element is missing"
UNWRITTEN = "one element is NaN, as nobody has written it"
WITHIN, BEYOND = "one element is off by 0.9 of its bound", "one element is off by 1.1 of its bound"
UNEQUAL_ROWS = f"{BEYOND}, where another row of A is 1000 times as large"
RIGHT = frozenset((ROUNDED, WITHIN))


@dataclass(frozen=True)
class Compared:
    """A product of float32 matrices with elements of up to `scale`, and what happened to it."""

    what: str
    K: int
    scale: float
    seed: int = 0

    @cached_property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return got, A and B."""
        rng = np.random.default_rng(self.seed)
        a, b = (
            (self.scale * rng.uniform(0.25, 1, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
            for shape in ((3, self.K), (self.K, 4))
        )
        if self.what == UNEQUAL_ROWS:
            a[1] *= np.float32(1000)
        terms = a[:, :, None] * b[None]
        got = sum(terms[:, k] for k in range(self.K))
        exact = a.astype(np.float64) @ b
        bound = self.K * UNIT / (1 - self.K * UNIT) * (abs(a).astype(np.float64) @ abs(b))
        if self.what == FORGOTTEN:
            got[0, 1] = terms[0, : self.K - 1, 1].sum()
        if self.what == UNWRITTEN:
            a[2], got[2] = 0, 0  # so that what takes NaN for 0 shows
            got[2, 3] = np.nan
        if self.what == WITHIN:
            got = exact + 0.9 * bound * (np.indices(bound.shape).sum(axis=0) == 1)
        if self.what in (BEYOND, UNEQUAL_ROWS):
            got = exact.copy()
            got[2, 0] += 1.1 * bound[2, 0]
        return got, a, b

    def __str__(self) -> str:
        return f"K = {self.K}, elements of up to {self.scale:g}; {self.what}"


HINT_OF = {
    UNWRITTEN: "NaN compares as False with everything: ask that all errors are within the bound, not that "
    "none is above it.",
    FORGOTTEN: "A fixed tolerance knows nothing of the size of the elements. The bound is K u / (1 - K u) "
    "times the sum of |A| |B|.",
    BEYOND: "The bound is K u / (1 - K u) times the sum of |A| |B|, with u = 2**-24; work it out in float64. "
    "Each element has a bound of its own: compare element by element, not with the largest.",
}


@criterion("{text}")
def _decides(function: Callable[..., Any], text: str, *cases: Compared) -> None:
    def ask(case: Compared) -> None:
        expected = case.what in RIGHT
        got = called(function, *(array.copy() for array in case.arguments))
        verdict = got if isinstance(got, bool | np.bool_) else number_of(got)
        if verdict not in (0, 1):
            raise Unmet(f"{case}\nis_right(got, A, B) returns {shown(got)}. Return True or False.")
        if bool(verdict) != expected:
            raise Unmet(f"{told(case)[:-1]}, and returns {bool(verdict)}.\n{hint(case)}")

    def told(case: Compared) -> str:
        return f"{case}\nis_right(got, A, B) should return {case.what in RIGHT}."

    def hint(case: Compared) -> str:
        return HINT_OF.get(case.what, HINT_OF[BEYOND])

    right_for(cases, lambda rng, case: replace(case, seed=int(rng.integers(1, 2**31))), ask, told)


EXERCISES = (
    Exercise("02.1", "The naive product", 2).asks(
        shared_out(
            right_on("right for square matrices", Matmul(16, 16, 16), Matmul(64, 64, 64), hints=MAPPED),
            replace(SHARES, once=SUM_UP),
        ),
        right_on("right where M, N and K differ", EXACT, Matmul(64, 16, 32), hints=MAPPED),
        no_finding(EXACT, hints=MAPPED),
    ),
    Exercise("02.2", "Any shape", 2).asks(
        shared_out(right_on("right where the blocks cover C exactly", EXACT, hints=GUARDED), SHARES),
        right_on("right where they stick out, for 1 to 70 rows and columns", *RAGGED, hints=GUARDED),
        no_finding(SMALL, hints=GUARDED),
    ),
    Exercise("02.3", "Scale and add, as BLAS does", 2, practice=True).asks(
        shared_out(
            right_on("right for alpha = 1, beta = 1", Matmul(33, 20, 17, alpha=1, beta=1), hints=SCALED),
            replace(SHARES, launch=lambda _: tiled(replace(SHARED, beta=1))),
        ),
        right_on("right for alpha = 3, beta = -2", Matmul(33, 20, 17, alpha=3, beta=-2), hints=SCALED),
        right_on(
            "right for beta = 0, where C holds NaN before",
            Matmul(33, 20, 17, alpha=3, beta=0),
            hints=SCALED,
        ),
        no_finding(SMALL, Matmul(33, 20, 17, alpha=1.5, beta=-0.5), hints=SCALED),
    ),
    Exercise("02.4", "Neighbours read neighbours", 3, given=2).asks(
        right_in("right for any shape", _in_rows(EXACT, *RAGGED), OF_A_ROW),
        no_finding_in(SOUND, _in_rows(SMALL), OF_A_ROW),
        at_most(
            4,
            "sectors_per_request",
            "no line needs more than 4 sectors per request",
            lambda: _in_a_row(_counted()),
            hint="Threads with neighbouring threadIdx.x are in one warp. Which index of A, B and C "
            "differs between them, and how far apart are those elements in memory?",
        ),
        shared_out(_all_lanes_work(), IN_A_ROW_SHARES),
    ),
    Exercise("02.5", "A test of results", 2, magic="answer", given=1, practice=True).asks(
        _decides(
            "accepts right results, of small and large elements",
            *(Compared(ROUNDED, K, scale) for K, scale in ((4, 1), (64, 1), (512, 1), (64, 0.01))),
            Compared(WITHIN, 8, 0.1),
        ),
        _decides(
            "accepts right results where elements are as large as 100",
            *(Compared(what, K, 100) for what in (ROUNDED, WITHIN) for K in (64, 512)),
        ),
        _decides(
            "rejects a missing term, also where elements are small",
            *(Compared(FORGOTTEN, 16, scale) for scale in (1, 0.1, 0.001)),
        ),
        _decides("rejects an element that nobody has written", *(Compared(UNWRITTEN, K, 1) for K in (4, 64))),
        _decides(
            "judges each element by its own bound",
            *(Compared(BEYOND, 8, 1), Compared(UNEQUAL_ROWS, 8, 1)),
            Compared(BEYOND, 2, 1),  # an exact product that is rounded to float32 is off by as much
        ),
    ),
)
