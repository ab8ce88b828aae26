"""Fresh inputs: inside `drawn(seed, exercise)` criteria try other numbers, and further sizes and cases.

So an answer that knows the stated ones by heart falls short. Outside, in a student's own check, everything is
as it is stated. What is drawn depends only on the seed, the exercise and what is stated, neither on the
answer nor on what was drawn before: it is the same for all students, and each time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil, gcd
from typing import Protocol, TypeVar
from zlib import crc32

import numpy as np

from labkit.kernels.problem import Problem

T = TypeVar("T")
P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound="Seeded")
Size = tuple[int, ...]

FACTORS = (-3, -1.5, -1, 0.5, 1.5, 2, 2.5, 4)  # in the place of alpha = 3, beta = -2
LEAST, MOST = 0.5, 1.25  # times a stated size
FAR = 3  # times the longest side that is stated
TILES = 64  # the largest side of a tile that a size is a multiple of, where an answer may choose its tiles
TRIES = 100

_seed: ContextVar[tuple[int, int] | None] = ContextVar("seed", default=None)


class Seeded(Protocol):
    """What makes its numbers from a seed."""

    @property
    def seed(self) -> int:
        """The seed."""


@contextmanager
def drawn(seed: int, exercise: str) -> Iterator[None]:
    """Draw what criteria try, for this exercise, until the context ends. `seed` is at least 0."""
    token = _seed.set((seed, crc32(exercise.encode())))
    try:
        yield
    finally:
        _seed.reset(token)


def generator(*stated: object) -> np.random.Generator | None:
    """Return what draws in the place of what is stated; None outside `drawn`."""
    seed = _seed.get()
    return None if seed is None else np.random.default_rng([*seed, crc32(repr(stated).encode())])


def fresh(stated: int, use: str = "") -> int:
    """Return a seed for numbers: `stated`, or one that is drawn.

    Each `use`, such as counting, has numbers of its own: what was kept of one launch is no result of another.
    """
    rng = generator("numbers", stated, use)
    if rng is not None:
        return int(rng.integers(2**31))
    return crc32(repr((stated, use)).encode()) if use else stated


def one_of(stated: T, others: Sequence[T]) -> T:
    """Return what is stated, or one of the others."""
    rng = generator("one of", stated)
    return stated if rng is None else others[int(rng.integers(len(others)))]


def further(stated: Sequence[T], draw: Callable[[np.random.Generator, T], T], count: int = 1) -> list[T]:
    """Return what is stated, and inside `drawn` so many more, each of the kind of a stated one."""
    rng = generator(stated)
    if rng is None:
        return list(stated)
    return [*stated, *(draw(rng, stated[int(rng.integers(len(stated)))]) for _ in range(count))]


def sizes(stated: Sequence[Size], whole: int = 1) -> list[Size]:
    """Return the sizes, and inside `drawn` a few more of their kind, about as large.

    They are alike in what divides all of them (`whole` at most), in being square or not, and in that no
    multiple of 4 is among them.
    """
    return further(stated, lambda rng, base: like(rng, base, stated, whole), _count(stated))


def instead(stated: Sequence[Size], whole: int = 1) -> list[Size]:
    """Return the sizes; inside `drawn` others in their places, each of its kind, see `sizes`.

    They are for what is counted: a limit that grows with the size takes no more launches than the stated one.
    """
    rng = generator("instead", stated, whole)
    return list(stated) if rng is None else [like(rng, size, [size], whole) for size in stated]


def problem_instead(stated: P, whole: int = 1) -> P:
    """Return the problem; inside `drawn` another in its place, with other sizes, see `instead`."""
    (size,) = instead([_size(stated)], whole)
    return _changed(stated, **dict(zip(stated.size_names, size, strict=True)))


def problems(stated: Sequence[P], whole: int = 1, longer: bool = False) -> list[P]:
    """Return the problems, and inside `drawn` a few more of their kind, with other sizes and factors.

    With `longer` there is one more for each side, in which that is longer than all that are stated.
    """
    all_sizes = [_size(problem) for problem in stated]

    def draw(rng: np.random.Generator, base: P) -> P:
        size = like(rng, _size(base), all_sizes, whole)
        scaled = [name for name, factor in base.factors.items() if factor not in (0, 1)]
        factors = {name: float(rng.choice(FACTORS)) for name in scaled}
        return _changed(base, **dict(zip(base.size_names, size, strict=True)), **factors)

    def lengthen(rng: np.random.Generator, base: P, side: int) -> P:
        column = tuple(size[side] for size in all_sizes)
        far = _near(FAR * max(column), column, whole)
        return _changed(draw(rng, base), **{base.size_names[side]: int(rng.choice(far))})

    found = further(stated, draw, _count(stated))
    sides = range(len(all_sizes[0])) if longer else ()
    far = (further(stated, partial(lengthen, side=side))[len(stated) :] for side in sides)
    return [*found, *chain.from_iterable(far)]


def numbers(task: S, use: str = "") -> S:
    """Return a Problem, or another dataclass with a `seed`, with the numbers of this `use`, see `fresh`."""
    return replace(task, seed=fresh(task.seed, use))  # type: ignore[type-var]  # every one is a dataclass


def like(rng: np.random.Generator, base: Size, stated: Sequence[Size], whole: int = 1) -> Size:
    """Draw another size near `base`, of the kind of the stated ones, see `sizes`; `base` if none is found.

    No side of it is one that is stated there, if such a size is found.
    """
    columns = list(zip(*stated, strict=True))
    near = [_near(value, column, whole) for value, column in zip(base, columns, strict=True)]
    unlike = [len(set(size)) for size in stated]
    best = base
    for _ in range(TRIES):
        if max(unlike) == 1:
            found = (int(rng.choice(near[0])),) * len(base)
        else:
            found = tuple(int(rng.choice(values)) for values in near)
        if found not in stated and min(unlike) <= len(set(found)) <= max(unlike):
            best = found
            if not any(side in column for side, column in zip(found, columns, strict=True)):
                break
    return best


def _near(value: int, stated: Size, whole: int) -> list[int]:
    """List what may stand in the place of a value of the stated ones."""
    step, is_odd = gcd(*stated, whole), all(each % 4 for each in stated)
    inside = range(ceil(LEAST * value / step) * step, int(MOST * value) + 1, step)
    near = {*inside, max(step, value - step), value + step, value + 2 * step}
    return sorted(each for each in near if not (is_odd and each % 4 == 0))


def _changed(problem: P, **values: float) -> P:
    return replace(problem, **values)  # type: ignore[type-var]  # every Problem is a dataclass


def _count(stated: Sequence[object]) -> int:
    return 1 + (len(stated) > 4) + (len(stated) > 8)


def _size(problem: Problem) -> Size:
    return tuple(problem.sizes.values())
