"""How often each cache line is fetched: the matrix product C = A B of the CPU versions in a small cache.

The accesses follow the loops of kernels/matmul/cpu_1_loops.c to cpu_5_blocked_bt.c, float32 and row-major,
for square matrices (N,N). A, B and C lie one behind the other in memory, each from the beginning of a line.
The cache is set-associative and replaces the least recently used line (LRU); a line that is written is
fetched first. There is no prefetching, and only data is counted.
Errors: ValueError for a version, a size or a cache that does not exist.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm

from labkit.pictures import _GAP, _MARGIN, _headline, _panel
from labkit.plots import Plot

LINE = 16  # floats in a line of 64 bytes
VECTOR = 8  # floats in an AVX register
SMALLEST, LARGEST = 16, 64  # N: a row fills a line, and a line is large enough to be seen
VERSIONS = ("three loops", "loop order", "simd", "blocked", "blocked, B transposed")

Numbers = npt.NDArray[np.int64]

_FRAME = "#D55E00"
_SIDE, _SCALE, _TITLE = 2.45, 1.15, 0.95  # inches of a matrix, of the colour scale beside, of the title above
_FAR = _MARGIN + _SIDE + _GAP  # where the second row and column of matrices begin


@dataclass(frozen=True)
class Cache:
    "`lines` lines in sets of `ways`; line number n belongs to set n modulo `sets`. ways == lines: one set."

    lines: int
    ways: int

    def __post_init__(self) -> None:
        if self.ways < 1 or self.lines < 1 or self.lines % self.ways:
            raise ValueError(
                f"{self.lines} lines do not make sets of {self.ways}. Choose ways that divide the lines."
            )

    @property
    def sets(self) -> int:
        "Number of sets."
        return self.lines // self.ways


@dataclass(frozen=True)
class Loops:
    "A version of the loops for matrices (N,N); `block` matters for the blocked ones only."

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
        "Names in the order in which they lie in memory."
        return "A", "BT" if self._transposed else "B", "C"

    @property
    def blocked(self) -> bool:
        "Does BLOCK matter?"
        return self.version.startswith("blocked")

    @property
    def lines_each(self) -> int:
        "Lines of one matrix; line number n is line n modulo this of matrix n // this."
        return -(-self.N * self.N // LINE)

    @property
    def compulsory(self) -> int:
        "The fewest misses possible: each line of the three matrices once."
        return 3 * self.lines_each

    def accesses(self) -> Numbers:
        """Element numbers in memory in the order of access: A from 0, B and C from where their lines begin.

        A vector is 8 accesses; `+=` on an element of memory is one. Transposing B beforehand is left out.
        """
        if self.version == "loop order":
            return np.concatenate([self._row_in_order(i) for i in range(self.N)])
        step = self.block if self.blocked else self.N
        starts = range(0, self.N, step)
        return np.concatenate(
            [
                self._sums(*(np.arange(x0, min(x0 + step, self.N)) for x0 in (i0, j0, k0)))
                for i0 in starts
                for j0 in starts
                for k0 in starts
            ]
        )

    def rounds(self) -> tuple[str, Numbers, Numbers]:
        "The first two rounds that use the same elements of B or its lines: what a round is, their accesses."
        if self.version == "loop order":
            return "row of C", self._row_in_order(0), self._row_in_order(1)
        if self.blocked:
            part = np.arange(min(self.block, self.N))
            first, second = (self._sums(np.array([i]), part, part) for i in (0, 1))
            return "row of a block", first, second
        width, k = self._width, np.arange(self.N)
        first, second = (self._sums(np.array([0]), np.arange(j, j + width), k) for j in (0, width))
        return "element of C" if width == 1 else f"vector of {width} elements of C", first, second

    def position(self, accesses: Numbers) -> tuple[int, int, int]:
        "Where the loops are after these accesses: i, j, k of the latest A[i,k] and B[k,j]."
        matrices, inside = np.divmod(accesses, self.lines_each * LINE)
        a, b = (int(inside[np.flatnonzero(matrices == matrix)[-1]]) for matrix in (0, 1))
        return a // self.N, b // self.N if self._transposed else b % self.N, a % self.N

    @property
    def _transposed(self) -> bool:
        return self.version.endswith("transposed")

    @property
    def _width(self) -> int:
        "Columns of C that are summed together."
        return 1 if self.version == "three loops" else VECTOR

    def _a(self, i: Numbers, k: Numbers) -> Numbers:
        return i * self.N + k

    def _b(self, k: Numbers, j: Numbers) -> Numbers:
        return self.lines_each * LINE + (j * self.N + k if self._transposed else k * self.N + j)

    def _c(self, i: Numbers, j: Numbers) -> Numbers:
        return 2 * self.lines_each * LINE + i * self.N + j

    def _row_in_order(self, i: int) -> Numbers:
        "Row i of cpu_2_loop_order.c: C[i,:] = 0, then A[i,k] once and B[k,j], C[i,j] for all j, for each k."
        row, k = np.array(i), np.arange(self.N)[:, None]
        inner = np.stack(np.broadcast_arrays(self._b(k, k.T), self._c(row, k.T)), axis=-1)
        steps = np.concatenate([self._a(row, k), inner.reshape(self.N, -1)], axis=1)
        return np.concatenate([self._c(row, k).ravel(), steps.ravel()])

    def _sums(self, i: Numbers, j: Numbers, k: Numbers) -> Numbers:
        """Rows i of C, columns j a vector at a time, and for each all k: A[i,k] and B[k,j..]; then C[i,j..].

        C is read first where there are sums of earlier k. Columns that fill no vector come one by one.
        """
        vectors = len(j) - len(j) % self._width
        parts = []
        for columns in [*j[:vectors].reshape(-1, self._width), *j[vectors:, None]]:
            a = self._a(i[:, None], k)[..., None]
            b = np.broadcast_to(self._b(k[:, None], columns), (len(i), len(k), len(columns)))
            c = self._c(i[:, None], columns)
            steps = np.concatenate([a, b], axis=2).reshape(len(i), -1)
            parts += [c, steps, c] if k[0] else [steps, c]
        return np.concatenate(parts, axis=1).ravel()


def missed(lines: Numbers, cache: Cache) -> npt.NDArray[np.bool_]:
    "For each access, given by its line number: is it a miss? The cache is empty at first."
    sets = (lines % cache.sets).astype(np.int16)  # 16 bits: NumPy sorts them in linear time
    order = np.argsort(sets, kind="stable")  # each set is a cache by itself
    lines, sets = lines[order], sets[order]
    changes = np.flatnonzero(np.diff(lines, prepend=-1))  # a line used again at once is a hit
    misses = np.zeros(len(lines), bool)
    for part in np.split(changes, np.searchsorted(sets[changes], np.arange(1, cache.sets))):
        misses[order[part]] = _missed_in_set(lines[part], cache.ways)
    return misses


def _missed_in_set(lines: Numbers, ways: int) -> npt.NDArray[np.bool_]:
    "`missed` in one set: Python's lru_cache is one, and replaces the least recently used entry."
    # Called on a miss only, as next(numbers, line): the line is a default that is never used. No Python runs.
    fetch = lru_cache(maxsize=ways)(partial(next, count()))
    fetches = np.fromiter(map(fetch, lines.tolist()), np.int64, len(lines))
    return np.diff(np.maximum.accumulate(fetches), prepend=-1) > 0  # a hit gives the number of an old fetch


def contents(lines: Numbers, cache: Cache) -> Numbers:
    "Numbers of the lines that are in the cache after these accesses: of each set, the latest used."
    numbers, age = np.unique(lines[::-1], return_index=True)
    latest = numbers[np.argsort(age)]
    return np.concatenate([latest[latest % cache.sets == place][: cache.ways] for place in range(cache.sets)])


@dataclass(frozen=True)
class Count:
    "`fetched[m, n]`: how often line n of matrix m, in the order of `loops.matrices`, was brought in."

    loops: Loops
    cache: Cache
    fetched: Numbers

    @property
    def misses(self) -> int:
        "Misses of all three matrices."
        return int(self.fetched.sum())

    @property
    def per_multiply_add(self) -> float:
        "Misses per multiply-add, of which the product has N³."
        return self.misses / self.loops.N**3


@lru_cache(maxsize=256)  # picture and text ask for the same, and again when only the moment moves
def count_misses(loops: Loops, cache: Cache) -> Count:
    "Run the loops' accesses through the cache. The array is read-only."
    lines = loops.accesses() // LINE
    fetched = np.bincount(lines[missed(lines, cache)], minlength=loops.compulsory)
    fetched.setflags(write=False)
    return Count(loops, cache, fetched.reshape(3, loops.lines_each))


@dataclass(frozen=True)
class Reuse:
    "Two rounds: the lines that the first `touched`, those used `again` in the second, and those then `kept`."

    name: str
    touched: int
    again: int
    kept: int


def reuse(loops: Loops, cache: Cache) -> Reuse:
    "Does the cache keep what the first round of the loops leaves to the second?"
    name, *accesses = loops.rounds()
    first, second = (each // LINE for each in accesses)
    again = np.intersect1d(first, second)
    lost = second[missed(np.concatenate([first, second]), cache)[len(first) :]]
    return Reuse(name, len(np.unique(first)), len(again), len(np.setdiff1d(again, lost)))


# The picture.


def cache_picture(loops: Loops, cache: Cache, moment: int = 40) -> Plot:
    """How often each line of A, B and C is fetched, in one colour scale for all versions of one N.

    Framed are the lines in the cache after `moment` percent of the accesses, 1 to 100; dots are the elements
    in use then. Beside them the misses of every version with this N, BLOCK and cache.
    """
    if not 1 <= moment <= 100:
        raise ValueError(f"moment {moment} is no part of the product. Choose 1 to 100 percent.")
    counted = count_misses(loops, cache)
    accesses = loops.accesses()
    accesses = accesses[: -(-len(accesses) * moment // 100)]
    present = np.zeros(loops.compulsory, bool)
    present[contents(accesses // LINE, cache)] = True
    i, j, k = loops.position(accesses)
    in_use = (i, k), (j, k) if loops.matrices[1] == "BT" else (k, j), (i, j)
    figure = Plot(figsize=(_FAR + _SIDE + _SCALE, _FAR + _SIDE + _TITLE))
    corners = (_MARGIN, _MARGIN), (_FAR, _FAR), (_FAR, _MARGIN)  # A left of C, B above it
    for number, (corner, (row, col)) in enumerate(zip(corners, in_use, strict=True)):
        axes = _panel(figure, *corner, loops.N, loops.N, _SIDE / loops.N)
        boxes = _draw_lines(axes, loops.N, counted.fetched[number], present.reshape(3, -1)[number])
        axes.plot(col, row, "o", color=_FRAME, markeredgecolor="white", markersize=6)
        _name(axes, loops, number, counted.fetched[number])
    _draw_scale(figure, boxes, LINE * loops.N)
    _compare(figure, counted)
    most = int(counted.fetched.sum(axis=1).argmax())
    _headline(
        figure,
        f"{loops.version}: {counted.misses:,} misses, {counted.per_multiply_add:.2g} a multiply-add; "
        f"each line of {loops.matrices[most]} is fetched {_times(counted.fetched[most])}",
        f"framed: lines in the cache after {moment} % of the accesses; dots: i = {i}, j = {j}, k = {k}",
    )
    return figure


def _draw_lines(axes: Axes, N: int, fetched: Numbers, present: npt.NDArray[np.bool_]) -> PolyCollection:
    "Each cache line as a box in its colour, in parts where it goes on in the next row."
    element = np.arange(N * N)
    first = element[(element % N == 0) | (element % LINE == 0)]
    x, y, width = first % N - 0.5, first // N - 0.5, np.diff(first, append=N * N)
    boxes = np.stack([[x, y], [x + width, y], [x + width, y + 1], [x, y + 1]]).transpose(2, 0, 1)
    lines = first // LINE
    # An element is used N times, so that a line is fetched 16 N times at most.
    fetches = PolyCollection(
        list(boxes), array=fetched[lines], cmap="cividis", norm=LogNorm(1, LINE * N), edgecolors="white"
    )
    framed = PolyCollection(list(boxes[present[lines]]), facecolors="none", edgecolors=_FRAME)
    for collection, linewidth in ((fetches, 0.5), (framed, 48 / N)):
        collection.set_linewidth(linewidth)
        axes.add_collection(collection, autolim=False)
    axes.set(xlim=(-0.5, N - 0.5), ylim=(N - 0.5, -0.5))
    return fetches


def _name(axes: Axes, loops: Loops, number: int, fetched: Numbers) -> None:
    name = loops.matrices[number]
    down, across = {"A": ("i", "k"), "B": ("k", "j"), "BT": ("j", "k"), "C": ("i", "j")}[name]
    axes.set_title(f"{name}: {fetched.sum():,} misses, each line {_times(fetched)}", fontsize=10, y=1)
    ticks = range(0, loops.N, VECTOR)
    axes.set(xlabel=f"{across} (elements)", ylabel=f"{down} (elements)", xticks=ticks, yticks=ticks)


def _times(fetched: Numbers) -> str:
    "How often lines are fetched: once; 3 times; 1 to 48 times."
    low, high = int(fetched.min()), int(fetched.max())
    if low < high:
        return f"{low:,} to {high:,} times"
    return "once" if low == 1 else f"{low:,} times"


def _axes(figure: Plot, left: float, bottom: float, width: float, height: float) -> Axes:
    "Axes placed in inches."
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def _draw_scale(figure: Plot, fetches: PolyCollection, most: int) -> None:
    "The colours' scale, right of C."
    axes = _axes(figure, _FAR + _SIDE + 0.2, _MARGIN, 0.15, _SIDE)
    bar = figure.colorbar(fetches, cax=axes, label="times fetched")
    powers = [4**power for power in range(6) if 4**power <= most]
    bar.set_ticks(powers, labels=[f"{power:,}" for power in powers])
    bar.minorticks_off()


def _compare(figure: Plot, counted: Count) -> None:
    "Misses of all versions, above A."
    loops, cache = counted.loops, counted.cache
    axes = _axes(figure, 1.5, _FAR + 0.5, _MARGIN + _SIDE - 1.5, _SIDE - 0.9)
    for row, version in enumerate(VERSIONS):
        each = count_misses(Loops(version, loops.N, loops.block), cache).per_multiply_add
        color = _FRAME if version == loops.version else "0.5"
        axes.plot(each, row, "o", color=color)
        axes.annotate(f"{each:.2g}", (each, row), (6, -3), textcoords="offset points", fontsize=8)
    axes.axvline(loops.compulsory / loops.N**3, color="0.5", linewidth=1, linestyle=":")
    axes.set_title("every version (dotted: each line once)", fontsize=8, y=1, x=1, ha="right")
    axes.set_xscale("log")
    axes.set(xlim=(0.002, 12), ylim=(len(VERSIONS) - 0.5, -0.5), xlabel="misses per multiply-add")
    axes.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.minorticks_off()
    axes.set_yticks(range(len(VERSIONS)), VERSIONS, fontsize=8)
