"""The kernels without names of notebook 09: all are right, and all but one are slower than they need be.

Each has a large launch, whose time is recorded and predicted, and a small one, which is profiled.
data/h200/unnamed has the recorded times, of these and of the solved notebook's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import signature
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import simt
from labkit.figures.source_costs import Heat
from labkit.paths import shipped
from labkit.records.provenance import provenance_of
from simt.common.errors import SimtError
from simt.common.limits import WARP

if TYPE_CHECKING:
    import pandas as pd

    from simt.timing.prediction import Prediction

GPU = "H200"  # that the times were recorded on
FIRST = 9  # the exercise of notebook 09 that fixes kernel A
TABLE = shipped("data") / "h200" / "unnamed" / "times.csv"

Sizes = tuple[int, ...]
Arrays = tuple[np.ndarray, ...]
Launch = tuple[Sizes, Sizes, tuple[Any, ...]]  # grid, block, arguments


@dataclass(frozen=True)
class Unnamed:
    """A kernel without a name, `large` and `small` sizes of its launches, and what it computes.

    `shapes(*sizes)` are those of its arrays, the output last; `make(rng, *sizes)` draws the inputs and works
    out the output. The grid covers `covered(*sizes)` elements with one thread each.
    """

    letter: str
    large: Sizes
    small: Sizes
    block: Sizes
    covered: Callable[..., int]
    shapes: Callable[..., tuple[Sizes, ...]]
    make: Callable[..., Arrays]
    takes: Callable[[Sizes], Sizes] = tuple  # the sizes that stand in the kernel's signature

    @cached_property
    def source(self) -> str:
        """Return the source."""
        return (Path(__file__).parent / f"{self.letter.lower()}.cu").read_text(encoding="utf-8")

    @cached_property
    def kernel(self) -> simt.Kernel:
        """Return the kernel, compiled for the simulator."""
        return simt.RawModule(code=self.source).get_function(self.letter.lower())

    def grid(self, sizes: Sizes) -> Sizes:
        """Return the blocks of a launch."""
        return (-(-self.covered(*sizes) // prod(self.block)),)

    def launch(self) -> Launch:
        """Return grid, block and arguments of the large launch; arrays are zeros, which take no memory."""
        arrays = (np.zeros(shape, np.float32) for shape in self.shapes(*self.large))
        return self.grid(self.large), self.block, (*arrays, *map(np.int32, self.takes(self.large)))

    @cached_property
    def predicted(self) -> Prediction:
        """Return the time that is predicted for the large launch on an H200."""
        return self.kernel.predict(*self.launch(), gpu=GPU)  # type: ignore[return-value]

    @cached_property
    def profile(self) -> simt.Profile:
        """Return the counters of the small launch."""
        *inputs, expected = self.make(np.random.default_rng(0), *self.small)
        args = (*inputs, np.zeros_like(expected), *map(np.int32, self.takes(self.small)))
        return self.kernel.profile(self.grid(self.small), self.block, args, gpu=GPU)

    @property
    def warps(self) -> int:
        """Return the warps of the small launch."""
        return prod(self.grid(self.small)) * prod(self.block) // WARP

    @property
    def issued(self) -> pd.Series[float]:
        """Return how many machine instructions of each kind a warp of the small launch issues, on average."""
        return self.profile.sass.kinds / self.warps

    @property
    def costs(self) -> Heat:
        """Return the source with what each line costs in the small launch, without a word about it."""
        return Heat(self.profile, silent=True)

    def told(self, sizes: Sizes) -> str:
        """Write sizes with their names: rows=512, cols=256."""
        names = [*signature(self.make).parameters][1:]  # the first one is the generator
        return ", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))

    def __repr__(self) -> str:
        (large,), (small,) = self.grid(self.large), self.grid(self.small)
        threads = "×".join(map(str, self.block))
        return (
            f"kernel {self.letter}: {self.told(self.large)} in {large} blocks of {threads} threads\n"
            f"  profiled: {self.told(self.small)} in {small} blocks"
        )


def _whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return whole numbers from 1 to 9, whose sums are exact."""
    return rng.integers(1, 9, shape, endpoint=True).astype(np.float32)


def _fractions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0, 1, shape).astype(np.float32)


def _rows(rng: np.random.Generator, rows: int, cols: int) -> Arrays:
    x = _whole(rng, rows, cols)
    return x, x.sum(1)


def _damped(rng: np.random.Generator, rounds: int, n: int) -> Arrays:
    x = _fractions(rng, n)
    return x, _towards_one(x, rounds).astype(np.float32)


def _towards_one(x: np.ndarray, rounds: int) -> np.ndarray:
    """Return what so many rounds of 0.999 v + 0.001 make of x, in float64."""
    return 1 + (x.astype(np.float64) - 1) * 0.999**rounds


def _starts(rng: np.random.Generator, rounds: int, n: int) -> Arrays:
    x = _fractions(rng, n)
    return x, np.sum([_towards_one(x + start, rounds) for start in range(4)], 0).astype(np.float32)


def _columns(rng: np.random.Generator, tiles: int) -> Arrays:
    x = _whole(rng, tiles, 32, 32)
    return x, x * x.sum(1, keepdims=True)


def _ring(rng: np.random.Generator, length: int, rounds: int, n: int) -> Arrays:
    x, v, i = _whole(rng, length), np.zeros(n), np.arange(n)
    for k in range(rounds):
        v = 0.999 * v + x[(i + k) % length]
    return x, v.astype(np.float32)


def _two_ways(rng: np.random.Generator, rounds: int, n: int) -> Arrays:
    x = _fractions(rng, n)
    grown = (x.astype(np.float64) + 1) * 1.001**rounds - 1
    return x, np.where(np.arange(n) % 2, _towards_one(x, rounds), grown).astype(np.float32)


def _added(rng: np.random.Generator, n: int) -> Arrays:
    x, y = _whole(rng, n), _whole(rng, n)
    return x, y, 2 * x + y


def _vectors(rounds: int, n: int) -> tuple[Sizes, ...]:
    return (n,), (n,)


def _last(*sizes: int) -> int:
    return sizes[-1]


_CASES = (
    Unnamed(
        "A", (131072, 256), (512, 256), (128,),
        lambda rows, cols: rows, lambda rows, cols: ((rows, cols), (rows,)), _rows,
    ),
    Unnamed("B", (256, 2**20), (256, 1024), (256,), _last, _vectors, _damped),
    Unnamed("C", (2048, 2**15), (2048, 1024), (256,), _last, _vectors, _starts),
    Unnamed(
        "D", (65536,), (4,), (32, 8),
        lambda tiles: 256 * tiles, lambda tiles: ((tiles, 32, 32),) * 2, _columns, lambda sizes: (),
    ),
    Unnamed(
        "E", (1000, 256, 2**20), (1000, 256, 1024), (256,),
        _last, lambda length, rounds, n: ((length,), (n,)), _ring,
    ),
    Unnamed("F", (512, 2**22), (512, 1024), (256,), _last, _vectors, _two_ways),
    Unnamed("G", (2**25,), (4096,), (256,), lambda n: n // 4, lambda n: ((n,),) * 3, _added),
)  # fmt: skip


def cases() -> Mapping[str, Unnamed]:
    """Return the kernels by letter, A to G."""
    return {case.letter: case for case in _CASES}


@cache
def times() -> pd.DataFrame:
    """Return the recorded ms of each large launch, `before` and `after` the solved notebook's fix."""
    import pandas as pd

    rows = pd.read_csv(TABLE)
    found = rows.pivot(index="kernel", columns="version", values="median_ms")[["before", "after"]]
    found.columns.name = None
    return found


def gain(letter: str) -> float:
    """Return how many times as fast a kernel became by its fix, as recorded."""
    return float(times().before[letter] / times().after[letter])


def compared(answer: Callable[[str], simt.AnyKernel]) -> pd.DataFrame:
    """Return the recorded times beside predicted ones, in ms.

    `answer` returns the student's kernel of an exercise, such as 09.9; where there is none it raises
    SimtError.
    """
    found = times().assign(**{"times as fast": times().before / times().after})
    found["before, predicted"] = [1e3 * cases()[letter].predicted.seconds for letter in found.index]
    own = []
    for letter in found.index:
        try:
            made = answer(f"09.{FIRST + _letters().index(letter)}").simulated
            own.append(1e3 * made.predict(*cases()[letter].launch(), gpu=GPU).seconds)
        except (SimtError, ValueError):
            own.append(float("nan"))
    found["your fix, predicted"] = own
    return found


def _letters() -> str:
    return "".join(cases())


def source() -> str:
    """Say where the recorded times come from."""
    told = provenance_of(TABLE)
    return f"recorded: {told['gpu']}, {told['date']}"
