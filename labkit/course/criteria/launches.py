"""Launches that criteria try: what the kernel is given, and what it must leave."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from labkit import simt
from labkit.core.compare import compare, unwritten
from labkit.course.drawn import numbers, sizes
from labkit.figures import own_product
from labkit.kernels.problem import Problem


class Launch(Protocol):
    """A launch that a criterion tries; str() tells the student which it was."""

    @property
    def grid(self) -> Any:
        """As in a call of the kernel."""

    @property
    def block(self) -> Any:
        """As in a call of the kernel."""

    def args(self, is_poisoned: bool = False) -> Sequence[Any]:
        """Fresh arguments; `is_poisoned`: an output that must not be read is memory that nobody has
        written.
        """

    def verify(self, args: Sequence[Any]) -> None:
        """Raise Mismatch unless the launch has left the right results in `args`."""


# The launches of a criterion, made when it is tried: how the kernel is launched its own source may say.
Launches = Callable[[simt.AnyKernel], Iterable[Launch]]


@dataclass(frozen=True)
class OnProblem:
    """A launch on a product or a transpose."""

    problem: Problem
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def args(self, is_poisoned: bool = False) -> Sequence[Any]:
        """See Launch. An output that beta scales is read."""
        args = list(self.problem.args(np))
        if is_poisoned and not getattr(self.problem, "beta", 0):
            at = list(self.problem.shapes()).index(self.problem.output_name)
            args[at] = simt.empty(args[at].shape, args[at].dtype)
        return args

    def verify(self, args: Sequence[Any]) -> None:
        """See Launch."""
        self.problem.verify(self.problem.output(tuple(args)))

    def __str__(self) -> str:
        return f"{self.problem}, grid {self.grid}, block {self.block}"


def tiled(problem: Problem, tile: int = 16, rows: int | None = None) -> OnProblem:
    """The launch that `Problem.launch(tile, rows)` says."""
    return OnProblem(numbers(problem), *problem.launch(tile, rows))


def as_said(kernel: simt.AnyKernel, problem: Problem) -> OnProblem:
    """The launch that the kernel's own line says. Raises LaunchError, see `kernels.launch_of`."""
    return OnProblem(numbers(problem), *own_product.launch(kernel, problem))


@dataclass(frozen=True)
class Given:
    """A launch `kernel(in, out, *sizes)`: what it is given, and what must stand in `out`, whose type it has.

    `told` says so to the student. Each element may be off by `unit` times its size; 0: it must be equal.
    """

    told: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]
    expected: np.ndarray
    unit: float = 0

    def args(self, is_poisoned: bool = False) -> list[Any]:
        """Fresh arguments; `out` is full of NaN, or memory that initcheck takes as never written."""
        shape, dtype = self.expected.shape, self.expected.dtype
        out = simt.empty(shape, dtype) if is_poisoned else unwritten(shape, dtype.name)
        return [*(array.copy() for array in self.inputs), out, *map(np.int32, self.sizes)]

    def verify(self, args: Sequence[Any]) -> None:
        """Raise Mismatch unless `out` among `args` is right."""
        at = len(self.inputs)
        tolerance = np.abs(self.unit * self.expected)
        compare("out", args[at], self.args()[at], self.expected, tolerance)

    def __str__(self) -> str:
        return f"{self.told}, grid {_shown(self.grid)}, block {_shown(self.block)}"


def each(make: Callable[..., Given], *stated: int | tuple[int, ...], whole: int = 1) -> Launches:
    """The launch that `make` makes of each size, which is a number or several; `whole` as in
    `drawn.sizes`.
    """
    tuples = [size if isinstance(size, tuple) else (size,) for size in stated]
    return lambda _: [make(*size) for size in sizes(tuples, whole)]


def _shown(size: tuple[int, ...]) -> str:
    """As the notebooks write it: 4, or (2, 3)."""
    return str(size[0] if len(size) == 1 else size)
