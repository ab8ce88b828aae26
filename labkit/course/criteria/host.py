"""Criteria for what stands around a kernel: a verdict on a launch, the wrong tiles of a product, a clock."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import simt
from labkit.course.criteria.model_gpu import ModelGpu
from labkit.course.criteria.python import called, is_of, kind_of, number_of, shown
from labkit.course.exercise import Unmet, criterion
from labkit.course.fresh_inputs import fresh, further, generator
from simt.common.errors import InvalidAccess

# A verdict on a launch: right, wrong or refused.

_COPY = """extern "C" __global__ void copy(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void turned(const float* in, float* out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = in[n - 1 - threadIdx.x];
}
extern "C" __global__ void one_off(const float* in, float* out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x] + (threadIdx.x == n / 2);
}
extern "C" __global__ void part(const float* in, float* out, int n)
{
    if (threadIdx.x + 1 < n) out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void idle(const float* in, float* out, int n) {}
extern "C" __global__ void outside(const float* in, float* out, int n) { out[n + threadIdx.x] = 0; }
"""


@dataclass(frozen=True)
class Trial:
    """A launch to be judged: what the student is told, a kernel of _COPY, the right verdict, and a hint.

    Its one block has `threads`. `out` holds a right result before the launch, unless it `is_fresh`; every
    right element is `each`, where that is given.
    """

    told: str
    kernel: str
    verdict: str
    hint: str
    threads: int = 64
    each: float | None = None
    is_fresh: bool = False

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `out` before the launch, and what is expected there after it."""
        rng = generator(self)
        various = np.arange(1, 65) if rng is None else rng.integers(1, 1000, rng.integers(33, 65))
        various = various.astype(np.float32)
        expected = various if self.each is None else np.full_like(various, self.each)
        return np.full_like(expected, -1) if self.is_fresh else expected.copy(), expected

    def launch(self, out: np.ndarray, expected: np.ndarray) -> None:
        """Fill `out` from `expected` as this trial does; both are float32 of one length."""
        kernel = simt.RawModule(code=_COPY).get_function(self.kernel)
        kernel(1, self.threads, (expected, out, np.int32(len(out))))


@criterion("{text}")
def verdicts(verdict: Callable[..., Any], text: str, *trials: Trial) -> None:
    """Ask that `verdict(launch, out, expected)` gives each trial's verdict."""
    rng = generator(trials)
    # Also not in the order that is stated, and one of them twice.
    order = trials if rng is None else [trials[at] for at in rng.permutation([*range(len(trials)), 0])]
    for trial in order:
        put = _judge(verdict, trial)
        if trial.kernel == "idle" and trial.each is None and put is not None:
            told = (
                f"a kernel that writes nothing, where every right element is {put:g}, as you have put there"
            )
            _judge(
                verdict,
                replace(trial, told=told, each=put, hint=f"{STALE} {put:g} can be a result; NaN cannot."),
            )


def _judge(verdict: Callable[..., Any], trial: Trial) -> float | None:
    """Raise Unmet unless `verdict` is that of a trial. Return what stood in all of `out` at the launch.

    That is None where the elements differ, and where the value is no number of an ordinary size.
    """
    out, expected = trial.arrays()
    before = []

    def launch() -> None:
        before.append(out.copy())
        trial.launch(out, expected)

    got = called(verdict, launch, out, expected.copy())
    if not isinstance(got, str) or got != trial.verdict:
        hint = NOT_REFUSED if isinstance(got, str) and got == "refused" else trial.hint
        if not isinstance(got, str) or got not in VERDICTS:
            hint = "Return one of the three words " + ", ".join(map(repr, VERDICTS)) + "."
        raise Unmet(f"{trial.told}: the verdict is {shown(got)}.\n{hint}")
    put = before[0] if before else expected
    return float(put[0]) if abs(put[0]) < ORDINARY and (put == put[0]).all() else None


ORDINARY = 1e6
VERDICTS = ("right", "wrong", "refused")
WRITTEN = "Every element is right. Do you look at the array that the kernel writes?"
STALE = (
    "out may still hold the result of an earlier launch. Before the launch, fill it with a value that no "
    "right result can have."
)
NOT_REFUSED = "The launch was not refused: it has run. A refused one raises labkit.simt.LaunchError."
ELEMENTS = "An element is wrong. Compare each element of out with the same element of expected: all of them."
ASK = "Nothing was computed. A refused launch raises labkit.simt.LaunchError: catch it, and return refused."


_OUTSIDE = Trial("", "outside", "", "")


@criterion("any other error gets through")
def others_get_through(verdict: Callable[..., Any]) -> None:
    """Ask that the InvalidAccess of a launch leaves `verdict`."""
    out, expected = _OUTSIDE.arrays()
    try:
        got = verdict(partial(_OUTSIDE.launch, out, expected), out, expected)
    except InvalidAccess:
        return
    except (Exception, SystemExit) as error:
        if not is_of(error, verdict):
            raise
        raise Unmet(f"For an access outside out it raises {kind_of(error)}: {error}") from None
    raise Unmet(
        f"A launch writes outside out and raises InvalidAccess: the verdict is {got!r}.\n"
        "The numbers are not wrong, and the launch was not refused. Catch LaunchError alone, so that every "
        "other error reaches the reader."
    )


# A comparison: where is a product wrong?

Tiles = set[tuple[int, int]]


def _product(A: np.ndarray, B: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return A @ B in float32, its terms added up in that order."""
    return np.cumsum(A[:, order].T[:, :, None] * B[order][:, None, :], axis=0, dtype=np.float32)[-1]


@dataclass(frozen=True)
class Factors:
    """A and B with elements up to `scale`, and K terms per sum; the product has `rows` and `cols`.

    With `cancels` every sum is 0; with `small_row` the elements of one row of A are ten thousand times
    smaller. With `positive` no term is negative; with `small_term` the last term of each sum is much smaller,
    too. With `alike` all terms of a sum are equal, so that roundings do not cancel.
    """

    K: int = 400
    scale: float = 1
    rows: int = 12
    cols: int = 18
    cancels: bool = False
    small_row: bool = False
    positive: bool = False
    small_term: bool = False
    alike: bool = False

    def matrices(self, row: int, use: str) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B; each use has numbers of its own. `row` is the small one, where there is one."""
        rng = np.random.default_rng(fresh(self.K, use))
        least = NEARLY if self.small_term else 0 if self.positive else -1
        shapes = (self.rows, self.K), (self.K, self.cols)
        A, B = (self.scale * rng.uniform(least, 1, shape) for shape in shapes)
        A[row] *= 1e-4 if self.small_row else 1
        A[:, -1] *= SMALL if self.small_term else 1
        if self.alike:
            A[:], B[:] = A[:, :1], B[:1]
        A, B = A.astype(np.float32), B.astype(np.float32)
        if self.cancels:
            A[:, self.K // 2 :], B[self.K // 2 :] = A[:, : self.K // 2], -B[: self.K // 2]
        return A, B

    def __str__(self) -> str:
        kinds = {
            ", every sum is 0": self.cancels,
            ", smaller ones in one row": self.small_row,
            ", no term is negative": self.positive,
            ", of which one is small": self.small_term,
            ", all terms of a sum alike": self.alike,
        }
        told = "".join(what for what in kinds if kinds[what])
        return f"{self.rows} x {self.cols}, K={self.K}, elements up to {self.scale:g}{told}"


# A term of this part of a sum of two is a hundred times what rounding does to it. Its factors are nearly 1.
SMALL, NEARLY = 6.5e-6, 0.95
FAR = 16  # times its bound: how far off an element is that a small multiple of the bound must not let pass


@dataclass(frozen=True)
class At:
    """Where a result is spoilt: an element, which lies in the tile (i // tile, j // tile)."""

    i: int
    j: int
    tile: int

    @property
    def first(self) -> tuple[int, int]:
        """Return the first element of the tile."""
        return self.i // self.tile * self.tile, self.j // self.tile * self.tile


Spoil = Callable[[np.ndarray, np.ndarray, np.ndarray, At], np.ndarray]


def unspoilt(A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At) -> np.ndarray:
    """Return A B."""
    return _product(A, B, order)


@dataclass(frozen=True)
class Result:
    """A product whose wrong tiles are asked for, `told` in words.

    Right ones have `order`, wrong ones `spoil`. What is spoilt lies in a whole tile, or with `at_edge` in the
    last row and column of tiles, which may stick out.
    """

    factors: Factors
    told: str
    spoil: Spoil = unspoilt
    order: str = "any"
    tile: int = 5
    at_edge: bool = False

    def ask(self, wrong_tiles: Callable[..., Any], use: str) -> None:
        """Raise Unmet unless `wrong_tiles` names the wrong tiles. Each use has its own numbers and order."""
        rng = np.random.default_rng(fresh(0, f"order {use}"))
        forwards = np.arange(self.factors.K)
        orders = {"forwards": forwards, "backwards": forwards[::-1], "any": rng.permutation(forwards)}
        at = self._place(rng)
        A, B = self.factors.matrices(at.i, use)
        right, got = (make(A, B, orders[self.order], at) for make in (unspoilt, self.spoil))
        off = np.abs(got - A.astype(np.float64) @ B)
        bound = self.factors.K * 2.0**-24 * (abs(A).astype(np.float64) @ abs(B))
        certain, changed = self._tiles(~(off <= FAR * bound)), self._tiles(got != right)
        listed = _listed(called(wrong_tiles, *(each.copy() for each in (got, A, B)), self.tile), self._count)
        if missed := certain - set(listed):
            raise Unmet(f"{self}: {self._missed(missed, set(listed), off)}")
        if extra := set(listed) - changed:
            why = BOUND if self.spoil is unspoilt else OWN
            raise Unmet(
                f"{self}: it lists {_named(extra)}, off by at most {self._within(extra, off):.2g}. Rounding "
                f"explains that.\n{why}"
            )
        if listed != sorted(set(listed)):
            raise Unmet(f"{self}: it returns {shown(listed)}.\n{ONCE}")

    def _missed(self, missed: Tiles, listed: Tiles, off: np.ndarray) -> str:
        """Say which wrong tiles are not listed, and the hint that fits."""
        if listed == {(j, i) for i, j in missed}:
            return f"it returns {shown(sorted(listed))}, and misses {_named(missed)}.\n{PLACE}"
        far = self._within(missed, off)
        if not np.isfinite(far):
            return f"it misses {_named(missed)}.\n{NAN}"
        last = [count - 1 for count in self._count]
        is_last = all(i == last[0] or j == last[1] for i, j in missed)
        why = EDGE if is_last and (listed or self.at_edge) else BOUND
        return f"it misses {_named(missed)}, off by {far:.2g}.\n{why}"

    @property
    def _count(self) -> tuple[int, int]:
        """Return the number of rows of tiles, and of columns."""
        return -(-self.factors.rows // self.tile), -(-self.factors.cols // self.tile)

    def _place(self, rng: np.random.Generator) -> At:
        """Draw the element to spoil. The two numbers of its tile differ, where there are enough tiles."""
        sides = self.factors.rows, self.factors.cols
        whole = [side // self.tile * self.tile for side in sides]
        while True:
            ranges = zip(whole, sides, strict=True)
            i, j = (
                int(rng.integers(start % side, side) if self.at_edge else rng.integers(max(1, start)))
                for start, side in ranges
            )
            if self.at_edge or i // self.tile != j // self.tile or max(whole) <= self.tile:
                return At(i, j, self.tile)

    def _tiles(self, where: np.ndarray) -> Tiles:
        """Return the tiles with such an element."""
        return {(i // self.tile, j // self.tile) for i, j in np.argwhere(where).tolist()}

    def _within(self, tiles: Tiles, off: np.ndarray) -> float:
        """Return by how much the first of these tiles is off; not finite where it holds NaN or infinity."""
        i, j = (number * self.tile for number in min(tiles))
        return float(off[i : i + self.tile, j : j + self.tile].max())

    def __str__(self) -> str:
        return f"{self.factors}, tile={self.tile}, {self.told}"

    def __repr__(self) -> str:
        """Write the same in each process: what is drawn in its place depends on it."""
        return f"{self}, {self.order}, {self.at_edge}"


ORDERS = {"forwards": "from first to last", "backwards": "from last to first", "any": "in some order"}


def right(*cases: Factors, tile: int = 5) -> tuple[Result, ...]:
    """Return right results, their terms added up in each of ORDERS."""
    return tuple(
        Result(factors, f"terms added up {told}", order=order, tile=tile)
        for factors in cases
        for order, told in ORDERS.items()
    )


def wrong(
    spoil: Spoil, what: str, *cases: Factors, tile: int = 5, at_edge: bool = False
) -> tuple[Result, ...]:
    """Return results that `spoil` makes of A and B."""
    return tuple(Result(factors, what, spoil, tile=tile, at_edge=at_edge) for factors in cases)


def _another(rng: np.random.Generator, base: Result) -> Result:
    """Draw other sizes, another scale and, for some hundred terms, another K: even, as halves may cancel."""
    factors, K = base.factors, base.factors.K
    if 8 < K < 1000:
        K = 2 * int(rng.integers(K // 3, K * 2 // 3))
    scale = float(f"{factors.scale * 10 ** rng.uniform(-0.5, 0.5):.2g}")
    rows, cols = (int(side + rng.integers(4)) for side in (factors.rows, factors.cols))
    tile = base.tile if base.tile > max(rows, cols) else int(rng.integers(3, 8))
    return replace(base, factors=replace(factors, K=K, scale=scale, rows=rows, cols=cols), tile=tile)


@criterion("{text}")
def locates(wrong_tiles: Callable[..., Any], text: str, *results: Result) -> None:
    """Ask for the wrong tiles of each result: none of a right one.

    There should be results of both kinds. Inside `drawn` they come in any order, and a few of them twice: who
    counts calls, or knows an earlier result again, learns nothing.
    """
    rng = generator("order", text)
    asked = further(results, _another, count=2)
    if rng is not None:
        again = rng.integers(len(asked), size=rng.integers(1, 4))
        asked = [asked[at] for at in rng.permutation([*range(len(asked)), *again])]
    for number, result in enumerate(asked):
        result.ask(wrong_tiles, f"{text} {number}")


def _listed(got: Any, count: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the tiles that an answer lists. Raises Unmet for what is no list of tiles."""
    rows = got.tolist() if isinstance(got, np.ndarray) else got
    pairs = [_pair(row) for row in rows] if isinstance(rows, list | tuple) else [None]
    listed = [pair for pair in pairs if pair is not None]
    if len(listed) < len(pairs):
        raise Unmet(f"It returns {shown(got)}.\n{FORM}")
    for i, j in listed:
        if not (0 <= i < count[0] and 0 <= j < count[1]):
            raise Unmet(f"It lists ({i}, {j}); there are {count[0]} x {count[1]} tiles.\n{PLACE}")
    return listed


def _pair(row: Any) -> tuple[int, int] | None:
    """Return the two whole numbers in a row of an answer, or None."""
    if not isinstance(row, list | tuple | np.ndarray) or len(row) != 2:
        return None
    i, j = map(number_of, row)
    return None if i is None or j is None or i % 1 or j % 1 else (int(i), int(j))


def _named(tiles: Tiles) -> str:
    """Name the first of some tiles, and say how many there are."""
    first, *more = sorted(tiles)
    return f"{len(tiles)} tiles, such as {first}" if more else f"tile {first}"


def lost_term(A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At, sign: int = 1) -> np.ndarray:
    """Return A B where one element lacks a term of this sign: that of middling size; of few the smallest."""
    got = _product(A, B, order)
    terms = A[at.i] * B[:, at.j]
    own = np.sort(sign * terms[sign * terms > 0])
    got[at.i, at.j] -= sign * own[len(own) // 2 if len(terms) > FEW else 0]
    return got


def half_sum(A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At) -> np.ndarray:
    """Return A B with sums that are kept in 16 bits."""
    total = np.zeros((len(A), B.shape[1]), np.float16)
    for k in order:
        total = (total + A[:, k, None] * B[k]).astype(np.float16)
    return total.astype(np.float32)


def with_one(value: float, A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At) -> np.ndarray:
    """Return A B with one element of that value, as a wrong kernel leaves NaN."""
    got = _product(A, B, order)
    got[at.i, at.j] = value
    return got


def without(axis: int, A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At) -> np.ndarray:
    """Return A B with a row of tiles full of zeros, or for axis 1 a column of tiles."""
    got = _product(A, B, order)
    start = at.first[axis]
    got.swapaxes(0, axis)[start : start + at.tile] = 0
    return got


def negated(A: np.ndarray, B: np.ndarray, order: np.ndarray, at: At) -> np.ndarray:
    """Return -A B, which no bound lets pass."""
    return -_product(A, B, order)


FEW = 8  # terms
RIGHT = right(Factors())[-1:]  # beside wrong results
WRONG = wrong(negated, "all signs are wrong", Factors(), tile=6)  # beside right results

BOUND = (
    "Rounding grows with the number of terms K and with their sizes, not with the sum: a bound is "
    "K * 2**-24 * (abs(A) @ abs(B)), element by element, or a small multiple of it."
)
OWN = "Judge each tile by its own elements, and each element by its own bound."
NAN = "Every comparison with NaN is False. Ask whether all differences are small, not whether one is large."
EDGE = (
    "Where tile does not divide a side of the product, the last row or column of tiles sticks out. It "
    "counts, too: round the number of tiles up."
)
PLACE = "Tile (i, j) is in row i and column j of the tiles: element [r, c] lies in (r // tile, c // tile)."
ONCE = "List each wrong tile once, sorted by i and then by j."
FORM = "Return a list of pairs (i, j), such as [(0, 2), (1, 0)], and [] for a right product."

# A clock: how long does a launch take?


@criterion("{text}")
def times(time_ms: Callable[..., Any], text: str, hint: str, *settings: dict[str, float]) -> None:
    """Ask for the kernel's time on each ModelGpu, within 2 %."""
    for setting in further(settings, _other_setting):
        model = ModelGpu(**setting)
        got = called(time_ms, model.launch, model.synchronize, model.clock)
        ms = number_of(got)
        if ms is None:
            raise Unmet(f"It returns {got!r}. Return a number, in milliseconds.")
        if not abs(ms - model.kernel_ms) <= 0.02 * model.kernel_ms:
            what = ", ".join(f"{name}={value:g}" for name, value in setting.items())
            raise Unmet(
                f"ModelGpu({what}): it returns {ms:.4g}; the kernel takes {model.kernel_ms:g} ms."
                f"\n{_why(ms / model.kernel_ms, hint)}"
            )


def _other_setting(rng: np.random.Generator, base: dict[str, float]) -> dict[str, float]:
    return {name: round(value * rng.uniform(0.6, 1.6), 1) for name, value in base.items()}


def _why(ratio: float, hint: str) -> str:
    """Return the hint for a time that is too short, or `hint` for one that is too long."""
    for power, unit in ((-1, "seconds"), (1, "microseconds")):
        if abs(ratio / 1000.0**power - 1) < 0.02:
            return f"That is {unit}. Return milliseconds."
    return UNFINISHED if ratio < 1 else hint


UNFINISHED = (
    "launch() returns as soon as the kernel is in the queue, after 0.005 ms. Read clock() again when the "
    "kernel has ended: synchronize() waits for that. clock() counts seconds."
)
EARLIER = (
    "Other work was in the queue, and you waited for it, too. Begin with an empty queue, and read the clock "
    "again after one launch."
)
FIRST = "The first launch also loads the kernel's code. Launch once before you read the clock."
