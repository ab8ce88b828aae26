"""Small kernels of many kinds whose times a GPU records: what a model of a kernel's time is held against.

A kernel is one .cu file with the header of tests/gallery and two lines more:

    // kind: stencil         what the kernel exercises; several kernels share a kind
    // set: build            build: a model may be fitted to its times; held out: they only judge the model

The first launch is small: tests/simt/timing/test_timed_kernels.py compares it with `expect:` in the
simulator. The others take a GPU about 10 microseconds to 3 milliseconds, and `launches` returns these.
benchmarks/record_times.py records them.
"""

import math
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER.parents[1] / "tests")]

from gallery import SEED, Argument, Case, _filled, read  # noqa: E402

SETS = ("build", "held out")
MOST = 2**20  # random numbers that an array of a large launch repeats


@dataclass(frozen=True)
class Launch:
    """A launch with the kernel's name, its kind and its set."""

    kernel: str
    kind: str
    set: str
    case: Case

    @property
    def name(self) -> str:
        """The kernel and the number of the launch in its file, such as saxpy-2."""
        return self.case.name


@cache
def every() -> tuple[Launch, ...]:
    """Return all launches of all files. Raises ValueError for a header that cannot be read."""
    found = []
    for path in sorted(FOLDER.glob("*.cu")):
        kind, its_set = (_said(path, key) for key in ("kind", "set"))
        if its_set not in SETS:
            raise ValueError(f"{path.name}: set {its_set!r} is not one of {', '.join(SETS)}")
        found += [Launch(path.stem, kind, its_set, case) for case in read(path)]
    return tuple(found)


def small() -> tuple[Launch, ...]:
    """Return each file's first launch, which the simulator runs in a moment."""
    return tuple(launch for launch in every() if launch.name.endswith("-1"))


def launches() -> tuple[Launch, ...]:
    """Return the launches that are timed: all but the first of each file."""
    return tuple(launch for launch in every() if not launch.name.endswith("-1"))


def values(argument: Argument) -> np.ndarray:
    """Return what an array of a large launch holds, in one dimension; if it is shorter, it repeats.

    Random numbers repeat after MOST, except for integers beyond 65,536, which are indices, and permutations.
    """
    rng, size = np.random.default_rng(SEED), int(np.prod(argument.shape or 1))
    name, _, limits = argument.fill.partition("(")
    if name == "integers":
        low, high = map(int, limits.rstrip(")").split(","))
        count = size if 2**16 < high <= 2**31 else min(size, MOST)
        return rng.integers(low, high, count, np.int64).astype(argument.dtype)
    if name == "permutation":
        return rng.permutation(np.arange(size, dtype=argument.dtype))
    if name in ("uniform", "normal"):
        return _filled(argument.fill, (min(size, MOST),), rng).astype(argument.dtype)
    return _filled(argument.fill, (1,), rng).astype(argument.dtype)


def nbytes(argument: Argument) -> int:
    """Return the size of an array; 0 for a number."""
    return 0 if argument.shape is None else math.prod(argument.shape) * np.dtype(argument.dtype).itemsize


def _said(path: Path, key: str) -> str:
    match = re.search(rf"^// {key}: (.+)$", path.read_text(encoding="utf-8"), re.M)
    if match is None:
        raise ValueError(f"{path.name} has no line // {key}:")
    return match[1].strip()
