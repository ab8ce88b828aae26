"""Launches that criteria try: their grid and block, what the kernel is given, and what it must leave."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from labkit import simt
from labkit.core.compare import compare, unwritten
from labkit.course.drawn import numbers, sizes
from labkit.figures import own_product
from labkit.kernels.problem import Problem


class Task(Protocol):
    """What a kernel is to work out: a Problem, or what is Given. str() tells the student which it was."""

    @property
    def reads_output(self) -> bool:
        """True where the kernel reads the output that it then writes."""

    def args(self, xp: Any) -> tuple[Any, ...]:
        """Make fresh arguments, with arrays of NumPy."""

    def output(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return the output among the arguments."""

    def verify(self, got: np.ndarray) -> None:
        """Raise Mismatch unless the output `got` is right."""


@dataclass(frozen=True)
class Launch:
    """A launch that a criterion tries; str() tells the student which it was."""

    task: Task
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def args(self, is_poisoned: bool = False) -> tuple[Any, ...]:
        """Make fresh arguments; `is_poisoned`: an output that must not be read counts as never written."""
        args = self.task.args(np)
        if not is_poisoned or self.task.reads_output:
            return args
        out = self.task.output(args)
        return tuple(simt.empty(out.shape, out.dtype) if arg is out else arg for arg in args)

    def verify(self, args: tuple[Any, ...]) -> None:
        """Raise Mismatch unless the launch has left the right results in `args`."""
        self.task.verify(self.task.output(args))

    def __str__(self) -> str:
        return f"{self.task}, grid {_shown(self.grid)}, block {_shown(self.block)}"


# The launches of a criterion, made when it is tried: how the kernel is launched its own source may say.
Launches = Callable[[simt.AnyKernel], Iterable[Launch]]


def tiled(problem: Problem, tile: int = 16, rows: int | None = None) -> Launch:
    """Make the launch that `Problem.launch(tile, rows)` says."""
    return Launch(numbers(problem), *problem.launch(tile, rows))


def as_said(kernel: simt.AnyKernel, problem: Problem) -> Launch:
    """Make the launch that the kernel's own line says. Raises LaunchError, see `kernels.launch_of`."""
    return Launch(numbers(problem), *own_product.launch(kernel, problem))


@dataclass(frozen=True)
class Given:
    """The arguments `(*inputs, out, *sizes)` of a kernel, and what must stand in `out`, whose type it has.

    `told` says so to the student. Each element may be off by `unit` times its size; 0: it must be equal.
    """

    told: str
    inputs: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]
    expected: np.ndarray
    unit: float = 0
    reads_output: bool = False

    def args(self, xp: Any = np) -> tuple[Any, ...]:
        """Make fresh arguments; `out` is full of NaN, or of the smallest int32."""
        out = unwritten(self.expected.shape, self.expected.dtype.name)
        return (*(xp.array(each) for each in self.inputs), out, *map(np.int32, self.sizes))

    def output(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return `out` among the arguments."""
        return args[len(self.inputs)]

    def verify(self, got: np.ndarray) -> None:
        """Raise Mismatch unless `out` is right."""
        compare("out", got, self.output(self.args()), self.expected, np.abs(self.unit * self.expected))

    def __str__(self) -> str:
        return self.told


def of_vector(x: np.ndarray, expected: np.ndarray, threads: int, n: int, unit: float = 0) -> Launch:
    """Make the launch of kernel(x, out, n), with one thread for each of the n elements."""
    return Launch(Given(f"n={n}", (x,), (n,), expected, unit), (-(-n // threads),), (threads,))


def each(make: Callable[..., Launch], *stated: int | tuple[int, ...], whole: int = 1) -> Launches:
    """Make a launch of each size, which is a number or several; `whole` is as in `drawn.sizes`."""
    tuples = [size if isinstance(size, tuple) else (size,) for size in stated]
    return lambda _: [make(*size) for size in sizes(tuples, whole)]


def _shown(size: Sequence[int]) -> str:
    """Write a size as the notebooks do: 4, or (2, 3)."""
    return str(size[0] if len(size) == 1 else size)
