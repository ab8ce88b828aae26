"""What a family of kernels solves: inputs, the right result, and all that the rest of labkit asks about it.

A problem makes its inputs from a seed, knows the right result and how far rounding may take a kernel from
it, how to launch a kernel, and how many operations and bytes it stands for. Each family has one, in its
`family.py`. Nothing outside a family's folder asks which family a problem belongs to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from math import isqrt, prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from labkit.core.compare import compare, differs
from labkit.core.errors import LaunchError, OutOfMemory
from labkit.core.limits import MAX_GRID, MAX_THREADS
from labkit.core.memory import refuse_beyond_memory

C_TYPES = {"float32": "float", "float64": "double", "int32": "int"}
INT_MAX = 2**31 - 1
BEYOND = 2**12  # how far kernels count past a row or column: k0 += TILE_K, and STAGES tiles ahead
LARGE_BYTES = 2**24  # of a problem: from here on a result on the GPU is verified there

Shape = tuple[int, ...]


class Problem(ABC):
    """What a family's kernels solve. A family's `family.py` has one subclass, a frozen dataclass.

    `arrays` names the arrays in the kernel's signature, in that order, with the sizes of each dimension;
    `size_names` are the integers that follow them there. The class variables below `output_name` have
    defaults that suit a family without references, copies or ceilings.
    """

    family: ClassVar[str]  # the folder's name, which is also the kernels' entry
    arrays: ClassVar[Mapping[str, tuple[str | int, ...]]]
    size_names: ClassVar[tuple[str, ...]]
    output_name: ClassVar[str]
    covered: ClassVar[str]  # the array whose elements the grid of `launch` covers
    unit: ClassVar[str] = "TFLOP/s"  # in which pictures rate the rungs; or "GB/s", of compulsory traffic

    # Sizes that trip the usual mistakes: around a warp and a tile, long and thin, no two alike.
    check_sizes: ClassVar[tuple[tuple[int, ...], ...]] = ()
    cpu_check_sizes: ClassVar[tuple[tuple[int, ...], ...]] = ()
    # Settings that checks take in turn, and what to say where the kernel is wrong for all but the first, or
    # for the first alone.
    variants: ClassVar[tuple[Mapping[str, float], ...]] = ({},)
    variant_hints: ClassVar[tuple[str, str]] = ("", "")

    # Of the ladder. The names are those of rungs: 2_tiled is "tiled".
    reference_name: ClassVar[str] = ""  # what the rungs are held against, see `reference_call`
    ceiling: ClassVar[str] = ""  # a kernel that computes nothing of use, and is no rung
    copies: ClassVar[tuple[str, ...]] = ()  # rungs and references that leave the input as it is
    rounding: ClassVar[Mapping[str, Mapping[str, int]]] = {}  # rung -> PRECISION -> least compute capability
    rounding_unit: ClassVar[float] = 0  # unit roundoff of the inputs of those
    cpu_rungs: ClassVar[Mapping[str, str]] = {}  # what records call the kernels in C
    dtype: str

    def __init_subclass__(cls) -> None:
        """Take the family's name from its folder: labkit.kernels.FAMILY.family."""
        cls.family = cls.__module__.split(".")[-2]

    def __post_init__(self) -> None:
        _check_sizes(**self.sizes)
        if self.dtype not in C_TYPES:
            raise ValueError(f"dtype {self.dtype!r} is not supported. Choose one of {', '.join(C_TYPES)}.")
        for name, shape in self.shapes().items():
            if prod(shape) > INT_MAX - BEYOND:
                raise ValueError(
                    f"{name} {shape} has {prod(shape)} elements; the kernels count with an int, "
                    f"which ends at {INT_MAX}, up to {BEYOND} beyond the edge. Choose smaller sizes."
                )

    def __str__(self) -> str:
        return " ".join([self.family, *(f"{name}={size}" for name, size in self.sizes.items()), self.dtype])

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name, in the order of the kernel's signature."""
        return {name: getattr(self, name) for name in self.size_names}

    @property
    def reads_output(self) -> bool:
        """True where the kernel reads the output that it then writes, so that a launch uses it up."""
        return False

    @classmethod
    def trials(cls, dtype: str, sizes: Sequence[tuple[int, ...]] | None = None) -> list["Problem"]:
        """The problems on which a check tries a kernel, with the family's variants in turn."""
        return [
            problem(cls.family, *size, dtype=dtype, seed=number, **cls.variants[number % len(cls.variants)])
            for number, size in enumerate(sizes or cls.check_sizes)
        ]

    @classmethod
    def benchmarked(cls, quick: bool = False) -> list["Problem"]:
        """The problems that `labkit bench` times the whole ladder on; `quick`: without the large ones."""
        return []

    @classmethod
    def benchmarked_rungs(cls, quick: bool = False) -> Iterator[tuple[str, "Problem", dict[str, int]]]:
        """Rungs or references that `labkit bench` times besides, each on a problem and with macros."""
        return iter(())

    def tolerance_on_cpu(self, macros: Mapping[str, str | int]) -> np.ndarray:
        """`tolerance` for a kernel in C with these macros."""
        return self.tolerance()

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """A call of the reference on CuPy arrays, for a GPU. Raises ValueError where it has no such dtype."""
        raise ValueError(f"{self.family} has no reference.")

    def relative_error(self, rung: str, args: tuple[Any, ...]) -> float | None:
        """Root mean square error of the output over that of the right one, of rungs where it is recorded."""
        return None

    def shapes(self) -> dict[str, Shape]:
        """Shape of each array, by its name in the kernel's signature and in that order."""
        sizes = self.sizes
        return {
            name: tuple(sizes[side] if isinstance(side, str) else side for side in sides)
            for name, sides in self.arrays.items()
        }

    @abstractmethod
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The host arrays before a launch, the output among them, made anew from the seed."""

    def scalars(self) -> tuple[np.generic, ...]:
        """What the kernel takes after its arrays: the sizes as int32, and what a family adds."""
        return tuple(map(np.int32, self.sizes.values()))

    @abstractmethod
    def _reference(self, *inputs: Any) -> Any:
        """`reference` from `inputs()` as arrays of NumPy or CuPy."""

    @abstractmethod
    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        """`tolerance` from `inputs()` as arrays of NumPy or CuPy."""

    def reference(self) -> np.ndarray:
        """The right output, in the output's dtype or in float64."""
        return self._reference(*self.inputs())

    def tolerance(self, unit_of_inputs: float = 0) -> np.ndarray:
        """How far each element of a right kernel's output may be from `reference()`; 0: it must be equal.

        `unit_of_inputs` is for a kernel that rounds its inputs to shorter numbers before it computes, as for
        tensor cores: their unit roundoff, 2^-11 for tf32 and half.
        """
        return self._tolerance(unit_of_inputs, *self.inputs())

    @property
    @abstractmethod
    def flops(self) -> int:
        """Arithmetic operations that a kernel is credited with."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Compulsory traffic: the bytes that must cross device memory, each element once."""

    @property
    def ctype(self) -> str:
        """C name of the dtype, as in `kernels.load(name, DTYPE=problem.ctype)`."""
        return C_TYPES[self.dtype]

    def gflops(self, seconds: float) -> float:
        """10^9 arithmetic operations a second."""
        return self.flops / seconds / 1e9

    def gbytes_per_s(self, seconds: float) -> float:
        """10^9 bytes of compulsory traffic a second: effective bandwidth, not what the kernel really
        moves.
        """
        return self.bytes / seconds / 1e9

    def args(self, xp: Any) -> tuple[Any, ...]:
        """Arguments of a launch: fresh arrays of `xp` (CuPy or NumPy), then scalars.

        Raises OutOfMemory where the arrays do not fit the GPU or this machine, before it makes any.
        """
        self._refuse_beyond_memory(xp)
        return (*(xp.asarray(array) for array in self.inputs()), *self.scalars())

    def output(self, args: tuple[Any, ...]) -> Any:
        """The output array among the arguments of a launch."""
        return args[list(self.shapes()).index(self.output_name)]

    def verify(self, got: Any, tolerance: np.ndarray | None = None, unit_of_inputs: float = 0) -> None:
        """Raise Mismatch unless every element of the output `got` (NumPy or CuPy) is within `tolerance`.

        That is `self.tolerance(unit_of_inputs)` where it is not given. Then the right output of a large
        problem is worked out where `got` is, on a GPU by cuBLAS, and kept for the next call. Raises
        ValueError where `got` has another shape or dtype than the output.
        """
        if self.bytes < LARGE_BYTES or tolerance is not None:
            got = _on_host(got)
        shape = self.shapes()[self.output_name]
        if got.shape != shape or got.dtype != self.dtype:
            raise ValueError(
                f"{self.output_name} is {got.dtype} {got.shape}; it should be {self.dtype} {shape}. "
                "Choose the array that the kernel wrote: problem.output(args)."
            )
        module = type(got).__module__.partition(".")[0]
        try:
            expected, allowed = (
                _solved(self, unit_of_inputs, module) if tolerance is None else (self.reference(), tolerance)
            )
            if not differs(got, expected, allowed).any():
                return
        except MemoryError:
            if module == "numpy":
                raise
            # the GPU holds the problem's arrays, and not these as well
            expected, allowed = _solved(self, unit_of_inputs, "numpy")
        compare(self.output_name, *map(_on_host, (got, self.output(self.inputs()), expected, allowed)))

    def _refuse_beyond_memory(self, xp: Any) -> None:
        shapes, itemsize = self.shapes(), np.dtype(self.dtype).itemsize
        elements = [prod(shape) for shape in shapes.values()]
        *names, last = (f"{name} {shape}" for name, shape in shapes.items())
        what = f"{', '.join(names)} and {last} of {self.dtype}"
        on_device = sum(elements) * itemsize
        on_host = on_device + max(elements) * 8  # random numbers are float64 at first
        try:
            refuse_beyond_memory(what, on_device, on_host, xp)
        except OutOfMemory:
            forget()
            refuse_beyond_memory(what, on_device, on_host, xp)

    def launch(self, tile: int, rows: int | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Grid and block for tiles of `tile` x `tile` elements, each with `tile` x `rows` threads.

        Without `rows` every element has its thread. Raises LaunchError where no GPU takes such a launch, or
        where the threads do not share a tile evenly.
        """
        block = _block(tile, tile if rows is None else rows)
        height, width = self.shapes()[self.covered]
        grid = (-(-width // tile), -(-height // tile))
        most = MAX_GRID[1]
        if grid[1] > most:
            raise LaunchError(
                f"grid {grid} has {grid[1]} blocks in y; a grid holds at most {most} there. "
                f"Choose TILE ≥ {-(-height // most)}, or fewer rows."
            )
        return grid, block


def problem(kind: str, *sizes: int, **settings: Any) -> Problem:
    """`problem("matmul", M, N, K, …)`: the problem of a family, which says what its sizes are.

    Settings of all families are dtype ("float32", "float64" or "int32") and seed.
    """
    return problem_class(kind)(*sizes, **settings)


@cache
def families() -> tuple[str, ...]:
    """The families of kernels: the folders beside this file that have a family.py."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/family.py")))


@cache
def problem_class(family: str) -> type[Problem]:
    """The problem of a family. Raises ValueError where there is no such family."""
    if family not in families():
        raise ValueError(f"there is no problem {family!r}. Choose one of {', '.join(families())}.")
    module = import_module(f"{__package__}.{family}.family")
    (found,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Problem) and each.__module__ == module.__name__
    )
    return found


def problem_of(row: Mapping[str, Any], dtype: str = "") -> Problem:
    """The problem of a row of records, in another dtype where one is given."""
    kind = problem_class(str(row["problem"]))
    sizes = [int(row[name.lower()]) for name in kind.size_names]
    return problem(kind.family, *sizes, dtype=dtype or str(row["dtype"]))


def __getattr__(name: str) -> type[Problem]:
    """The families' problems by their own names: `from labkit.problems import Matmul`."""
    if not name.startswith("_"):
        for family in families():
            if problem_class(family).__name__ == name:
                return problem_class(family)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def forget() -> None:
    """Give back the memory of the right output that `verify` keeps: gigabytes, of a large problem."""
    _solved.cache_clear()


@lru_cache(maxsize=1)
def _solved(problem: Problem, unit_of_inputs: float, module: str) -> tuple[Any, Any]:
    """Reference and tolerance of `problem` as arrays of `module`. Kept: a ladder's rungs have one problem."""
    xp = import_module(module)
    inputs = [xp.asarray(array) for array in problem.inputs()]
    return problem._reference(*inputs), problem._tolerance(unit_of_inputs, *inputs)


def _on_host(array: Any) -> np.ndarray:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def _block(tile: int, rows: int) -> Shape:
    """(tile, rows), where a block can have that shape."""
    _check_sizes(TILE=tile, ROWS=rows)
    threads, most = tile * rows, MAX_THREADS
    if threads > most:
        way_out = f"TILE ≤ {isqrt(most)}" if rows == tile else f"TILE × ROWS ≤ {most}"
        raise LaunchError(
            f"block ({tile}, {rows}) has {threads} threads; a block holds at most {most}. Choose {way_out}."
        )
    if tile % rows:
        divisors = ", ".join(str(n) for n in range(1, tile + 1) if tile % n == 0)
        raise LaunchError(
            f"TILE={tile} is not a multiple of ROWS={rows}; a thread moves TILE / ROWS elements. "
            f"Choose ROWS from {divisors}."
        )
    return tile, rows


def _check_sizes(**sizes: object) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name}={value!r} is not a size. Choose a whole number of at least 1.")
