"""Launches that criteria try: their grid and block, what the kernel is given, and what it must leave.

Criteria launch kernels by `Launch` alone. So each launch that is verified, checked or counted has numbers of
its own and memory that remembers no earlier launch, and no result is left unverified.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

import simt
from labkit.course import fresh_inputs
from labkit.figures import own_product
from labkit.kernels import verify
from labkit.kernels.problem import Problem
from simt.common.compare import Mismatch, compare, unwritten
from simt.common.errors import SimtError
from simt.common.occupancy import DEFAULT_GPU

# Draws the inputs of a kernel from a generator; the right output comes last.
Make = Callable[[np.random.Generator], tuple[np.ndarray, ...]]


class Task(Protocol):
    """What a kernel is to work out: a Problem, or what is Given. str() tells the student which it was."""

    @property
    def seed(self) -> int:
        """The seed of its numbers."""

    @property
    def reads_output(self) -> bool:
        """True where the kernel reads the output that it then writes."""

    def args(self, xp: Any) -> tuple[Any, ...]:
        """Make fresh arguments, with arrays of NumPy."""

    def output(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return the output among the arguments."""

    def verify(self, got: np.ndarray) -> None:
        """Raise Mismatch unless the output `got` is right."""


class Wrong(Mismatch):
    """The results of a launch are wrong: `output`, of a task with these numbers."""

    def __init__(self, told: Mismatch, task: Task, output: np.ndarray) -> None:
        super().__init__(str(told), told.index, told.got, told.expected, told.wrong, told.total, told.where)
        self.task, self.output = task, output


@dataclass(frozen=True)
class Launch:
    """A launch that a criterion tries, with `shared_mem` bytes of dynamic shared memory per block.

    It is number `times` of as many in a row, which share the module's variables. str() tells the student
    which it was.
    """

    task: Task
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_mem: int = 0
    times: int = 1

    def run(self, kernel: simt.AnyKernel) -> None:
        """Launch the kernel. Raises Wrong unless its results are right."""
        with self._begun(kernel, "run") as args:
            for _ in range(self.times - 1):
                kernel(self.grid, self.block, self.task.args(np), self.shared_mem, verify.TIMEOUT)
            kernel(self.grid, self.block, args, self.shared_mem, verify.TIMEOUT)

    def check(self, kernel: simt.AnyKernel) -> tuple[list[simt.Finding], Wrong | None]:
        """Return what `kernel.check` finds, and what is wrong with the results, if anything is.

        An output that must not be read counts as never written.
        """
        findings: list[simt.Finding] = []
        try:
            with self._begun(kernel, "checked") as args:
                findings += kernel.check(self.grid, self.block, args, self.shared_mem, timeout=verify.TIMEOUT)
        except Wrong as wrong:
            return findings, self._told_plainly(kernel) or wrong
        return findings, None

    def _told_plainly(self, kernel: simt.AnyKernel) -> Wrong | None:
        """Return what is wrong after a plain launch: a checked one cannot tell NaN from never written."""
        try:
            self.run(kernel)
        except Wrong as wrong:
            return wrong
        except SimtError:
            return None
        return None

    def profile(self, kernel: simt.AnyKernel, gpu: str = DEFAULT_GPU) -> simt.Profile:
        """Return the profile of a launch. Raises Wrong unless its results are right."""
        with self._begun(kernel, "counted") as args:
            return kernel.profile(
                self.grid, self.block, args, self.shared_mem, timeout=verify.TIMEOUT, gpu=gpu
            )

    def written_by_part(self, kernel: simt.AnyKernel, most: int) -> list[int]:
        """Return how many elements of the output each part of the grid writes; `most` parts at most."""
        blocks, found = math.prod(self.grid), []
        for part in range(min(most, blocks)):
            args = fresh_inputs.numbers(self.task, "part").args(np)
            before = _bits(self.task.output(args)).copy()
            kernel.module.restart()
            part_of_grid = list(range(part, blocks, most))
            kernel.profile(self.grid, self.block, args, self.shared_mem, part_of_grid, verify.TIMEOUT)
            found.append(int((_bits(self.task.output(args)) != before).sum()))
        return found

    def loaded_by_block(self, kernel: simt.AnyKernel) -> list[int]:
        """Return how many elements of global memory each block loads that runs alone."""
        blocks, found = math.prod(self.grid), []
        for block in range(blocks):
            args = fresh_inputs.numbers(self.task, "part").args(np)
            kernel.module.restart()
            one = kernel.profile(self.grid, self.block, args, self.shared_mem, [block], verify.TIMEOUT)
            lines = one.lines.query("space == 'global' and op == 'ld'")
            found.append(round(int(lines.threads.sum()) / blocks))  # the profile scales to the grid
        return found

    @contextmanager
    def _begun(self, kernel: simt.AnyKernel, use: str) -> Iterator[tuple[Any, ...]]:
        """Hand out the arguments of a launch, and verify what it leaves there."""
        task = fresh_inputs.numbers(self.task, use)
        args = task.args(np)
        if use == "checked" and not task.reads_output:
            out = task.output(args)
            args = tuple(simt.empty(out.shape, out.dtype) if arg is out else arg for arg in args)
        kernel.module.restart()
        yield args
        out = _unwritten_as_such(task.output(args))
        try:
            task.verify(out)
        except Mismatch as told:
            raise Wrong(told, task, out) from None

    def __str__(self) -> str:
        dynamic = f", {self.shared_mem} bytes of dynamic shared memory" if self.shared_mem else ""
        row = f", launch {self.times} of {self.times} in a row" if self.times > 1 else ""
        return f"{self.task}, grid {_shown(self.grid)}, block {_shown(self.block)}{dynamic}{row}"


# The launches of a criterion, made when it is tried: how the kernel is launched its own source may say.
Launches = Callable[[simt.AnyKernel], Iterable[Launch]]


def tiled(problem: Problem, tile: int = 16, rows: int | None = None) -> Launch:
    """Make the launch that `Problem.launch(tile, rows)` says."""
    return Launch(problem, *problem.launch(tile, rows))


def as_said(kernel: simt.AnyKernel, problem: Problem) -> Launch:
    """Make the launch that the kernel's own line says. Raises LaunchError, see `kernels.launch_of`."""
    return Launch(problem, *own_product.launch(kernel, problem))


def in_blocks(problem: Problem, x: int, y: int) -> Launch:
    """Make a launch with blocks of x * y threads, and one thread for each element that the problem covers."""
    rows, cols = problem.shapes()[problem.covered]
    return Launch(problem, (-(-cols // x), -(-rows // y)), (x, y))


@dataclass(frozen=True)
class Given:
    """The arguments `(*inputs, out, *sizes)` of a kernel, and what must stand in `out`, whose type it has.

    `make` draws the inputs and says what is expected of them; `told` names the case to the student. Each
    element may be off by `unit` times its size; 0: it must be equal. Where the kernel adds to `out`, it
    `starts_at_0`.
    """

    told: str
    make: Make
    sizes: tuple[int, ...]
    seed: int = 0
    unit: float = 0
    starts_at_0: bool = False

    @property
    def reads_output(self) -> bool:
        """Return True where the kernel adds to `out`."""
        return self.starts_at_0

    @cached_property
    def _made(self) -> tuple[list[np.ndarray], np.ndarray]:
        *inputs, expected = self.make(np.random.default_rng(self.seed))
        return inputs, expected

    def args(self, xp: Any = np) -> tuple[Any, ...]:
        """Make fresh arguments; `out` is full of 0, or else of NaN or of the smallest int32."""
        inputs = self._made[0]
        return (*(xp.array(each) for each in inputs), self._before(), *map(np.int32, self.sizes))

    def output(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return `out` among the arguments."""
        return args[-1 - len(self.sizes)]

    def verify(self, got: np.ndarray) -> None:
        """Raise Mismatch unless the output `got` is right."""
        expected = self._made[1]
        compare("out", got, self._before(), expected, np.abs(self.unit * expected))

    def _before(self) -> np.ndarray:
        """Return what stands in `out` before the launch."""
        expected = self._made[1]
        if self.starts_at_0:
            return np.zeros_like(expected)
        return unwritten(expected.shape, expected.dtype.name)

    def __str__(self) -> str:
        return self.told


def of_vector(make: Make, threads: int, n: int, unit: float = 0) -> Launch:
    """Make the launch of kernel(x, out, n), with one thread for each of the n elements."""
    return Launch(Given(f"n={n}", make, (n,), n, unit), (-(-n // threads),), (threads,))


def all_of(make: Callable[..., Launch], *stated: int | tuple[int, ...], whole: int = 1) -> Launches:
    """Make a launch of each size, which is a number or several; `whole` is as in `drawn.sizes`."""
    tuples = [size if isinstance(size, tuple) else (size,) for size in stated]
    return lambda _: [make(*size) for size in fresh_inputs.sizes(tuples, whole)]


def _unwritten_as_such(out: np.ndarray) -> np.ndarray:
    """Return the output of a checked launch with the usual value where nothing was written."""
    nothing = _bits(simt.empty(1, out.dtype))[0]
    return np.where(_bits(out) == nothing, unwritten(out.shape, out.dtype.name), out)


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def _shown(size: Sequence[int]) -> str:
    """Write a size as the notebooks do: 4, or (2, 3)."""
    return str(size[0] if len(size) == 1 else size)
