"""Count how often each cache line is fetched: the CPU versions of C = A B with a small cache.

The accesses follow the loops of kernels/matmul/cpu_1_loops.c to cpu_5_blocked_bt.c, float32 and row-major,
for square matrices (N,N). A, B and C follow each other in memory, each at the beginning of a line. The cache
is set-associative and replaces the least recently used line (LRU); a line that is written is fetched first.
There is no prefetching, and only data is counted. Raises ValueError for an unknown version, size or cache.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 16  # floats in a line of 64 bytes
VECTOR = 8  # floats in an AVX register
SMALLEST, LARGEST = 16, 64  # N: a row fills a line, and a line is large enough to be seen
VERSIONS = ("three loops", "loop order", "simd", "blocked", "blocked, B transposed")

Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Cache:
    """`lines` lines in sets of `ways`; line n belongs to set n modulo `sets`. ways == lines: one set."""

    lines: int
    ways: int

    def __post_init__(self) -> None:
        if self.ways < 1 or self.lines < 1 or self.lines % self.ways:
            raise ValueError(
                f"{self.lines} lines do not make sets of {self.ways}. Choose a divisor of {self.lines}."
            )

    @property
    def sets(self) -> int:
        """Return the number of sets."""
        return self.lines // self.ways


@dataclass(frozen=True)
class Loops:
    """A version of the loops for matrices (N,N); `block` only matters for the blocked ones."""

    version: str
    N: int
    block: int

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            raise ValueError(f"there is no version {self.version!r}. Choose one of {'; '.join(VERSIONS)}.")
        if not SMALLEST <= self.N <= LARGEST:
            raise ValueError(f"N={self.N} cannot be drawn line by line. Choose {SMALLEST} to {LARGEST}.")
        if self.block < VECTOR or self.block % VECTOR:
            raise ValueError(f"BLOCK={self.block}: a block holds whole vectors. Choose 8, 16, 24, …")

    @property
    def matrices(self) -> tuple[str, str, str]:
        """Return the matrices' names in the order in which they lie in memory."""
        return "A", "BT" if self._transposed else "B", "C"

    @property
    def blocked(self) -> bool:
        """Return whether BLOCK matters."""
        return self.version.startswith("blocked")

    @property
    def lines_each(self) -> int:
        """Return the lines per matrix; line number n is line n modulo this of matrix n // this."""
        return -(-self.N * self.N // LINE)

    @property
    def compulsory(self) -> int:
        """Return the fewest misses possible: each line of the three matrices once."""
        return 3 * self.lines_each

    @property
    def period(self) -> int:
        """Return after how many accesses the same lines often recur (an element of C, a j, a k); or 0."""
        periods = {"three loops": 2 * self.N + 1, "loop order": 2, "blocked, B transposed": 1 + VECTOR}
        return periods.get(self.version, 0)

    def accesses(self) -> Numbers:
        """Return element numbers in memory in the order of access: A from 0, B and C from their first lines.

        A vector is 8 accesses; `+=` on an element of memory is one. Transposing B beforehand is left out.
        """
        if self.version == "loop order":
            return np.concatenate([self._row_in_order(i) for i in range(self.N)])
        step = self.block if self.blocked else self.N
        parts = np.split(_numbers(0, self.N), range(step, self.N, step))
        all_rows = [self._sums(_numbers(0, self.N), columns, k) for columns in parts for k in parts]
        return np.concatenate([each[rows].ravel() for rows in parts for each in all_rows])

    def rounds(self) -> tuple[str, Numbers, Numbers]:
        """Return what a round is, and the accesses of the first two that use the same lines of B."""
        if self.version == "loop order":
            return "row of C", self._row_in_order(0), self._row_in_order(1)
        if self.blocked:
            part = _numbers(0, min(self.block, self.N))
            first, second = self._sums(_numbers(0, 2), part, part)
            return "row of a block", first, second
        both = self._sums(_numbers(0, 1), _numbers(0, 2 * self._width), _numbers(0, self.N))
        first, second = np.split(both[0], 2)
        return "element of C" if self._width == 1 else f"vector of {VECTOR} elements of C", first, second

    def position(self, accesses: Numbers) -> tuple[int, int, int]:
        """Return where the loops are after these accesses: i, j, k of the latest A[i,k] and B[k,j]."""
        matrices, inside = np.divmod(accesses, self.lines_each * LINE)
        a, b = (int(inside[np.flatnonzero(matrices == matrix)[-1]]) for matrix in (0, 1))
        return a // self.N, b // self.N if self._transposed else b % self.N, a % self.N

    @property
    def _transposed(self) -> bool:
        return self.version.endswith("transposed")

    @property
    def _width(self) -> int:
        """Return how many columns of C are summed together."""
        return 1 if self.version == "three loops" else VECTOR

    def _b(self, k: Numbers, j: Numbers) -> Numbers:
        return self.lines_each * LINE + (j * self.N + k if self._transposed else k * self.N + j)

    def _c(self, i: Numbers, j: Numbers) -> Numbers:
        return 2 * self.lines_each * LINE + i * self.N + j

    def _row_in_order(self, i: int) -> Numbers:
        """Return row i of cpu_2_loop_order.c: C[i,:] = 0; per k, A[i,k] once, B[k,j] and C[i,j] for all j."""
        row, k = np.array(i, np.int16), _numbers(0, self.N)[:, None]
        inner = np.stack(np.broadcast_arrays(self._b(k, k.T), self._c(row, k.T)), axis=-1)
        steps = np.concatenate([row * self.N + k, inner.reshape(self.N, -1)], axis=1)
        return np.concatenate([self._c(row, k).ravel(), steps.ravel()])

    def _sums(self, i: Numbers, j: Numbers, k: Numbers) -> Numbers:
        """Return each row i of C, a vector of columns j at a time: A[i,k] and B[k,j..] for all k; C[i,j..].

        C is read first where there are sums of earlier k. Columns that do not fill a vector are computed one
        by one.
        """
        vectors = len(j) - len(j) % self._width
        parts = []
        for columns in [*j[:vectors].reshape(-1, self._width), *j[vectors:, None]]:
            a = (i[:, None] * self.N + k)[..., None]
            b = np.broadcast_to(self._b(k[:, None], columns), (len(i), len(k), len(columns)))
            c = self._c(i[:, None], columns)
            steps = np.concatenate([a, b], axis=2).reshape(len(i), -1)
            parts += [c, steps, c] if k[0] else [steps, c]
        return np.concatenate(parts, axis=1)


def _numbers(first: int, end: int) -> Numbers:
    return np.arange(first, end, dtype=np.int16)  # fast, and holds all elements of three matrices


def missed(lines: Numbers, cache: Cache) -> npt.NDArray[np.bool_]:
    """Return for each access, given by its line number, whether it misses. The cache starts empty."""
    changes = np.flatnonzero(np.append(True, lines[1:] != lines[:-1]))  # a line used again at once is a hit
    sets = (lines[changes] % cache.sets).astype(np.int16)  # 16 bits: NumPy sorts them in linear time
    order = np.argsort(sets, kind="stable")  # each set is a separate cache
    misses = np.zeros(len(lines), bool)
    for part in np.split(changes[order], np.searchsorted(sets[order], np.arange(1, cache.sets))):
        misses[part] = _missed_in_set(lines[part], cache.ways)
    return misses


def _missed_in_set(lines: Numbers, ways: int) -> npt.NDArray[np.bool_]:
    """Compute `missed` in one set with Python's lru_cache, which replaces the least recently used entry."""
    # Called only on a miss, as next(numbers, line): the default `line` is never used. No Python code runs.
    fetch = lru_cache(maxsize=ways)(partial(next, count()))
    fetches = np.fromiter(map(fetch, lines.tolist()), np.int64, len(lines))
    return np.diff(np.maximum.accumulate(fetches), prepend=-1) > 0  # a hit gives the number of an old fetch


def folded(lines: Numbers, period: int) -> tuple[Numbers, Numbers]:
    """Return fewer accesses with the same misses: their lines, and how many accesses each stands for.

    Where `period` accesses are repeated, each repetition leaves the cache unchanged. So all repetitions have
    the same misses, and the first stands for them.
    """
    if not period:
        return lines, np.ones_like(lines)
    same = np.zeros(len(lines) + 1, bool)
    same[period:-1] = lines[period:] == lines[:-period]
    edges = np.flatnonzero(np.append(False, same[1:] != same[:-1]))
    first, times = edges[::2], np.diff(edges)[::2] // period
    first, times = first[times > 1], times[times > 1]
    change = np.zeros(len(lines) + 1, np.int32)
    change[first], change[first + period], change[first + times * period] = times - 1, -times, 1
    stands_for = 1 + np.cumsum(change, dtype=np.int32)[:-1]
    return lines[stands_for > 0], stands_for[stands_for > 0]


def contents(lines: Numbers, cache: Cache) -> Numbers:
    """Return the numbers of the lines in the cache after these accesses: the latest used of each set."""
    numbers, age = np.unique(lines[::-1], return_index=True)
    latest = numbers[np.argsort(age)]
    return np.concatenate([latest[latest % cache.sets == place][: cache.ways] for place in range(cache.sets)])


@dataclass(frozen=True)
class Count:
    """`fetched[m, n]`: how often line n of matrix m, in the order of `loops.matrices`, was fetched."""

    loops: Loops
    cache: Cache
    fetched: Numbers

    @property
    def misses(self) -> int:
        """Return the misses of all three matrices."""
        return int(self.fetched.sum())

    @property
    def per_multiply_add(self) -> float:
        """Return the misses per multiply-add; the product has N³ multiply-adds."""
        return self.misses / self.loops.N**3


@lru_cache(maxsize=256)  # picture and text ask for the same, and again when only the moment moves
def count_misses(loops: Loops, cache: Cache) -> Count:
    """Run the loops' accesses through the cache. The array is read-only."""
    lines, times = folded(loops.accesses() // LINE, loops.period)
    misses = missed(lines, cache)
    fetched = np.bincount(lines[misses], times[misses], loops.compulsory).astype(np.int64)
    fetched.setflags(write=False)
    return Count(loops, cache, fetched.reshape(3, loops.lines_each))


@dataclass(frozen=True)
class Reuse:
    """Two rounds: lines the first `touched`, those used `again` in the second, those `kept` till then."""

    name: str
    touched: int
    again: int
    kept: int


def reuse(loops: Loops, cache: Cache) -> Reuse:
    """Count the lines of the loops' first round that the cache still holds in the second."""
    name, first, second = loops.rounds()
    first, second = first // LINE, second // LINE
    again = np.intersect1d(first, second)
    lost = second[missed(np.concatenate([first, second]), cache)[len(first) :]]
    return Reuse(name, len(np.unique(first)), len(again), len(np.setdiff1d(again, lost)))
