"""What the message of a failed launch ends with: what was seen, and a hint whose own test says so.

A hint on an edge is given where the wrong elements lie at one, a hint on a barrier where a thread reads what
another has written, and so on. Where no test says so, there is no hint.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from labkit.course.criteria.launches import Launch, Wrong
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import Problem
from simt import Finding
from simt.common.compare import differs, unwritten

MISALIGNED = "An access of 8 or 16 bytes wants an address that is a multiple of as many bytes."
ARRIVE = "Every thread of the block must come to every barrier, also one that has no element."
TWICE = "Two threads write the same element, and one result is lost: let each element belong to one thread."
OF_A_THREAD = (
    "An array that a kernel declares belongs to one thread. What the threads of a block fill together is "
    "declared __shared__."
)
NO_DYNAMIC = "This launch gives no dynamic shared memory: declare the array with its size, without extern."
STOPPED = ("trap", "assert", "recursion", "driver", "pointer")  # kinds of findings that are no accesses
_ELSEWHERE = re.compile(
    r"(of|on|reads) (shared |variable |a local |byte )"
)  # not in an argument of the kernel
NO_ALPHA = "alpha has no effect: it should scale the sum."
ALPHA_FOR_ALL = "alpha scales beta * C, too: it should scale the sum alone."
NO_OLD = "beta * C is not added: C keeps nothing of its old elements."
NO_BETA = "beta has no effect: it should scale the old element of C."
BETA_FOR_ALL = "beta scales the sum, too: it should scale the old element of C alone."
WRONG_ROWS_OF_A = "Row i of A is taken from index i * {}; it begins at i * K."
WRONG_ROWS_OF_B = "Row k of B is taken from index k * {}; it begins at k * N."
COLUMNS_OF_B = "Columns of B are taken for its rows."
COLUMNS_OF_A = "Columns of A are taken for its rows."
NO_TERM = "Nothing is added to the sum: does the loop over k run, and is the sum a float?"
DIFFERENT = 4  # times the tolerance: how far a result may be from that of a known mistake


@dataclass(frozen=True)
class Hints:
    """The hints of a criterion, by what they apply to.

    `usual` is for wrong results, and `edges` for those that are wrong at the edges alone. `untouched`, or
    else `guard`, is for elements that nothing was written to. `out_of_bounds` is for an access outside an
    array, and `guard` for one where there are edges. `race` is for a race on shared memory, `twice` for two
    writes to it, and `owner` for a race on an argument. `unread` is for an output that is read before it is
    written, and `unfilled` for shared memory that nobody has filled. Where all sizes are multiples of
    `fits`, or else of the block's sides, there are no edges. Where thread (x, y) of the grid is `by_place`,
    it has the element in column x and row y, and `guard` is for threads that have none. `nan` is for results
    that are NaN. Findings of the kinds in `ignores` do not count.
    """

    usual: str = ""
    out_of_bounds: str = ""
    race: str = ""
    owner: str = ""
    edges: str = ""
    unread: str = ""
    unfilled: str = ""
    misaligned: str = MISALIGNED
    sync: str = ARRIVE
    guard: str = ""
    untouched: str = ""
    twice: str = TWICE
    fits: int = 0
    by_place: bool = False
    nan: str = ""
    ignores: tuple[str, ...] = ()

    def for_finding(self, finding: Finding, launch: Launch) -> str:
        """Return the hint that fits a finding."""
        first = str(finding).partition("\n")[0]
        if finding.tool == "memcheck":
            if finding.kind == "misaligned":
                return self.misaligned
            if finding.kind in STOPPED:
                return ""  # the message says enough
            if "block's 0 bytes of shared memory" in first and not launch.shared_mem:
                return NO_DYNAMIC
            needs_guard = self._has_edges(launch) and not self._has_element(finding, launch)
            return (self.guard if needs_guard else "") or self.out_of_bounds
        if finding.tool == "synccheck":
            return self.sync
        if finding.tool == "racecheck":
            if "write after write" in first:
                return (self.owner or self.race if _ELSEWHERE.search(first) is None else "") or self.twice
            return self.race if "of shared" in first else self.owner or self.race
        if finding.tool == "initcheck":
            if _ELSEWHERE.search(first) is None and finding.kind != "unset variable":
                return self.unread
            if "reads a local" in first:
                return OF_A_THREAD
            if "of shared" in first:
                return self.unfilled or (self.edges if self._has_edges(launch) else "") or self.usual
        return ""

    def for_results(self, wrong: Wrong, launch: Launch) -> str:
        """Say what the wrong results have in common, and return the hint that fits them."""
        if told := known_mistake(wrong, of_terms):
            return told
        place, fitting = known_mistake(wrong, of_places) or places(wrong.where), self.usual
        if _is_computed_nan(wrong):
            fitting = self.nan  # inputs are finite, so that no row or column that is mistaken makes a NaN
        elif place and is_untouched(wrong):
            fitting = self.untouched or self.guard or self.usual
        elif self._is_at_edge(wrong.where, launch):
            fitting = self.edges or (self.guard if is_untouched(wrong) else "") or self.usual
        elif self.edges and self._sticks_out_along_k(launch):
            fitting = self.edges
        return "\n".join(filter(None, (place, fitting)))

    def _sides(self, launch: Launch) -> tuple[int, ...]:
        return (self.fits, self.fits) if self.fits else launch.block[:2]

    def _has_edges(self, launch: Launch) -> bool:
        """Return True where some size is no multiple of a side."""
        task = launch.task
        sizes = task.sizes.values() if isinstance(task, Problem) else getattr(task, "sizes", ())
        return any(size % side for size in sizes for side in self._sides(launch))

    def _has_element(self, finding: Finding, launch: Launch) -> bool:
        """Return True where the thread of a finding is known to have an element of the output."""
        shape = launch.task.output(launch.task.args(np)).shape
        if not self.by_place or len(shape) != 2 or len(launch.block) != 2:
            return False
        x, y = (
            block * side + thread
            for block, side, thread in zip(finding.block, launch.block, finding.thread, strict=False)
        )
        return y < shape[0] and x < shape[1]

    def _sticks_out_along_k(self, launch: Launch) -> bool:
        """Return True where tiles stick out along K, so that any element may lack terms."""
        return isinstance(launch.task, Matmul) and launch.task.K % self._sides(launch)[0] > 0

    def _is_at_edge(self, where: np.ndarray, launch: Launch) -> bool:
        """Return True where all that is wrong lies in tiles that stick out."""
        at_edge, sides = np.zeros_like(where), self._sides(launch)
        for axis, (size, side) in enumerate(zip(where.shape, sides[: where.ndim][::-1], strict=False)):
            np.moveaxis(at_edge, axis, 0)[size // side * side :] = True
        return not (where & ~at_edge).any()


NO_HINTS = Hints()
# What comes of usual mistakes: each in words, with the results that it gives.
Mistakes = Callable[[Matmul, Wrong], Iterator[tuple[str, np.ndarray]]]


def is_untouched(wrong: Wrong) -> bool:
    """Return True where nothing was written to any of the wrong elements."""
    out = wrong.output[wrong.where]
    before = unwritten(out.shape, out.dtype.name)
    return not wrong.task.reads_output and out.tobytes() == before.tobytes()


def _is_computed_nan(wrong: Wrong) -> bool:
    """Return True where all wrong elements are NaN that the kernel has worked out and written."""
    out = wrong.output[wrong.where]
    return out.dtype.kind == "f" and bool(np.isnan(out).all()) and not is_untouched(wrong)


def places(where: np.ndarray) -> str:
    """Say in which rows and columns all wrong elements are, if not in all."""
    if where.ndim > 2:
        return ""
    names = ("row", "column") if where.ndim == 2 else ("element",)
    told = []
    for axis, name in enumerate(names):
        (hit,) = np.nonzero(where.any(axis=tuple(each for each in range(where.ndim) if each != axis)))
        if len(hit) == where.shape[axis]:
            continue
        first, last = int(hit[0]), int(hit[-1])
        step = int(hit[1] - first) if len(hit) > 1 else 1
        if len(hit) == 1:
            told.append(f"{name} {first}")
        elif list(hit) == list(range(first, last + 1, step)):
            every = f", every {step}" if step > 1 else ""
            told.append(f"{name}s {first} to {last}{every}")
    return f"All wrong elements are in {' and '.join(told)} of {shape_of(where)}." if told else ""


def shape_of(where: np.ndarray) -> str:
    """Write the shape of an output: 45 x 29."""
    return " x ".join(map(str, where.shape))


def known_mistake(wrong: Wrong, mistakes: Mistakes) -> str:
    """Say which of these mistakes gives just these results; "" if none does."""
    task, out = wrong.task, wrong.output[wrong.where]
    if not isinstance(task, Matmul) or task.dtype == "int32" or not np.isfinite(out).all():
        return ""
    allowed = DIFFERENT * task.tolerance()[wrong.where]
    for told, results in mistakes(task, wrong):
        if not differs(out, results[wrong.where], allowed).any():
            return told
    return ""


def _matrices(task: Matmul) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B and what is left of C, in float64."""
    a, b, c = (np.nan_to_num(array).astype(np.float64) for array in task.inputs())
    return a, b, c if task.beta else np.zeros_like(c)


def of_terms(task: Matmul, wrong: Wrong) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what comes of factors and terms that are left out, each with the results that it gives."""
    a, b, c = _matrices(task)
    alpha, beta, K = task.alpha, task.beta, task.K
    old = beta * c
    if alpha != 1:
        yield NO_ALPHA, a @ b + old
        yield ALPHA_FOR_ALL, alpha * (a @ b + old)
    if beta:
        yield NO_OLD, alpha * (a @ b)
        yield NO_BETA, alpha * (a @ b) + c
        yield BETA_FOR_ALL, beta * alpha * (a @ b) + old
    i, j = wrong.index
    terms = alpha * a[i] * b[:, j]
    for is_late in (False, True):
        sums = np.concatenate([[0], np.cumsum(terms[::-1] if is_late else terms)])[:K] + old[i, j]
        near = np.flatnonzero(np.abs(sums - wrong.output[i, j]) <= DIFFERENT * task.tolerance()[i, j])
        if near.size and near[0] == 0:
            yield NO_TERM, old
        for count in near[near > 0][::-1][:DIFFERENT]:
            kept = slice(K - count, K) if is_late else slice(0, count)
            yield missing_terms(K - count, K, is_late), alpha * a[:, kept] @ b[kept] + old


def missing_terms(count: int, K: int, is_late: bool) -> str:
    """Say how many terms a sum lacks, and at which end."""
    end = "first" if is_late else "last"
    lost = f"the {end} {count} of {K} terms are missing" if count > 1 else f"the {end} term is missing"
    return f"The sum {'begins late' if is_late else 'ends early'}: {lost}."


def of_places(task: Matmul, wrong: Wrong) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what comes of rows that are taken to have another length, or to be columns."""
    a, b, c = _matrices(task)
    old = task.beta * c
    sizes = task.sizes
    of_a, of_b = ({name: size for name, size in sizes.items() if size != right} for right in (task.K, task.N))

    def rows(matrix: np.ndarray, length: int) -> np.ndarray:
        first, along = np.arange(matrix.shape[0])[:, None], np.arange(matrix.shape[1])
        return matrix.ravel()[(first * length + along) % matrix.size]

    for name, length in of_a.items():
        yield WRONG_ROWS_OF_A.format(name), task.alpha * rows(a, length) @ b + old
    for name, length in of_b.items():
        yield WRONG_ROWS_OF_B.format(name), task.alpha * a @ rows(b, length) + old
    if task.N == task.K:
        yield COLUMNS_OF_B, task.alpha * a @ b.T + old
    if task.M == task.K:
        yield COLUMNS_OF_A, task.alpha * a.T @ b + old
