"""What a family of kernels solves: its inputs, the right result, and what the rest of labkit needs.

A problem makes its inputs from a seed. It knows the right result and how far rounding may take a kernel from
it, how a kernel is launched, and how many operations and bytes it counts for. Each family defines one, in its
`family.py`. What takes any family asks the problem, not for its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from math import isqrt, prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simt.common.bits import as_cupy_bits, from_bits
from simt.common.compare import compare, differs
from simt.common.errors import LaunchError, OutOfMemory
from simt.common.limits import MAX_GRID, MAX_THREADS
from simt.common.memory import refuse_beyond_memory

C_TYPES = {"float32": "float", "float64": "double", "int32": "int"}
INT_MAX = 2**31 - 1
BEYOND = 2**12  # how far kernels count past a row or column: k0 += TILE_K, and STAGES tiles ahead
LARGE_BYTES = 2**24  # problems from this size on are verified on the GPU if the result is there

Shape = tuple[int, ...]


class Problem(ABC):
    """The problem that a family's kernels solve. Each `family.py` has one subclass, a frozen dataclass.

    `arrays` names the arrays in the kernel's signature, in that order, with the sizes of each dimension;
    `size_names` are the integers that follow them there. The class variables below `output_name` have
    defaults that suit a family without references, copies or ceilings.
    """

    family: ClassVar[str]  # the folder's name and the name of the kernels' entry
    arrays: ClassVar[Mapping[str, tuple[str | int, ...]]]
    size_names: ClassVar[tuple[str, ...]]
    output_name: ClassVar[str]
    covered: ClassVar[str]  # the array whose elements the grid of `launch` covers
    unit: ClassVar[str] = "TFLOP/s"  # unit of the rungs' rates in pictures; or "GB/s", of compulsory traffic

    # Sizes that expose the usual mistakes: around a warp and a tile, long and thin, no two alike.
    check_sizes: ClassVar[tuple[tuple[int, ...], ...]] = ()
    cpu_check_sizes: ClassVar[tuple[tuple[int, ...], ...]] = ()
    # Settings that a check uses in turn, with the message for a kernel that is wrong for all but the first,
    # and the one for a kernel that is wrong for the first only.
    variants: ClassVar[tuple[Mapping[str, float], ...]] = ({},)
    variant_hints: ClassVar[tuple[str, str]] = ("", "")

    # For the ladder. The names are those of rungs: 2_tiled is "tiled".
    reference_name: ClassVar[str] = ""  # what the rungs are compared with, see `reference_call`
    ceiling: ClassVar[str] = ""  # a kernel that computes nothing useful and is not a rung
    copies: ClassVar[tuple[str, ...]] = ()  # rungs and references that copy the input unchanged
    rounding: ClassVar[Mapping[str, Mapping[str, int]]] = {}  # rung -> PRECISION -> least compute capability
    rounding_unit: ClassVar[float] = 0  # unit roundoff of their inputs
    beside: ClassVar[tuple[str, ...]] = ()  # kernels for shapes that the ladder is not timed on
    cpu_rungs: ClassVar[Mapping[str, str]] = {}  # names of the kernels in C in the records
    dtypes: ClassVar[Mapping[str, str]] = C_TYPES  # the values of `dtype`, with the C names for DTYPE
    needs: ClassVar[
        Mapping[str, str]
    ] = {}  # the least GPU for a dtype, such as sm_80, where not every GPU does
    dtype: str
    seed: int

    def __init_subclass__(cls) -> None:
        """Take the family's name from its folder: labkit.kernels.FAMILY.family."""
        cls.family = cls.__module__.split(".")[-2]

    def __post_init__(self) -> None:
        _check_sizes(**self.sizes)
        if self.dtype not in self.dtypes:
            raise ValueError(
                f"dtype {self.dtype!r} is not supported. Choose one of {', '.join(self.dtypes)}."
            )
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
        """Return the sizes by name, in the order of the kernel's signature."""
        return {name: getattr(self, name) for name in self.size_names}

    @property
    def factors(self) -> dict[str, float]:
        """Numbers that scale the result, such as alpha and beta of a product, by name."""
        return {}

    @property
    def reads_output(self) -> bool:
        """Return True where the kernel also reads its output, so that a launch uses it up."""
        return False

    @classmethod
    def trials(cls, dtype: str = "", sizes: Sequence[tuple[int, ...]] | None = None) -> list["Problem"]:
        """Return the problems on which a check tries a kernel, using the family's variants in turn.

        The default is the family's own dtype: float32, where it has that one.
        """
        chosen = {"dtype": dtype} if dtype else {}
        return [
            problem(cls.family, *size, seed=number, **chosen, **cls.variants[number % len(cls.variants)])
            for number, size in enumerate(sizes or cls.check_sizes)
        ]

    @classmethod
    def benchmarked(cls, quick: bool = False) -> list["Problem"]:
        """Return the problems on which `labkit bench` times the ladder; `quick` omits the large ones."""
        return []

    @classmethod
    def benchmarked_rungs(cls, quick: bool = False) -> Iterator[tuple[str, "Problem", dict[str, int]]]:
        """Yield what else `labkit bench` times: a rung or reference, its problem and its macros."""
        return iter(())

    def tolerance_on_cpu(self, macros: Mapping[str, str | int]) -> np.ndarray:
        """Return `tolerance` for a kernel in C with these macros."""
        return self.tolerance()

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """Return a call of the reference on CuPy arrays. Raises ValueError if it does not take the dtype."""
        raise ValueError(f"{self.family} has no reference.")

    def relative_error(self, rung: str, args: tuple[Any, ...]) -> float | None:
        """Return the output's RMS error relative to the right output's RMS, for rungs that record it."""
        return None

    def shapes(self) -> dict[str, Shape]:
        """Return each array's shape by its name, in the order of the kernel's signature."""
        sizes = self.sizes
        return {
            name: tuple(sizes[side] if isinstance(side, str) else side for side in sides)
            for name, sides in self.arrays.items()
        }

    def array_dtypes(self) -> dict[str, np.dtype]:
        """Return each array's NumPy type by its name; `dtype` for all, where a family does not say more."""
        return dict.fromkeys(self.arrays, np.dtype(self.dtype))

    @property
    def output_dtype(self) -> np.dtype:
        """Return the NumPy type of the output."""
        return self.array_dtypes()[self.output_name]

    def array_bytes(self) -> dict[str, int]:
        """Return each array's bytes by its name."""
        sizes = zip(self.shapes().items(), self.array_dtypes().values(), strict=True)
        return {name: prod(shape) * dtype.itemsize for (name, shape), dtype in sizes}

    def zeros(self) -> tuple[np.ndarray, ...]:
        """Make arrays of zeros like `inputs()`, which take no memory until somebody writes to them."""
        return tuple(map(np.zeros, self.shapes().values(), self.array_dtypes().values()))

    @abstractmethod
    def inputs(self) -> tuple[np.ndarray, ...]:
        """Make the host arrays of a launch, including the output, from the seed."""

    def scalars(self) -> tuple[np.generic, ...]:
        """Return the arguments that follow the arrays: the sizes as int32, then the family's own numbers."""
        return tuple(map(np.int32, self.sizes.values()))

    @abstractmethod
    def _reference(self, *inputs: Any) -> Any:
        """Compute `reference` from `inputs()` as arrays of NumPy or CuPy."""

    @abstractmethod
    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        """Compute `tolerance` from `inputs()` as arrays of NumPy or CuPy."""

    def reference(self) -> np.ndarray:
        """Return the right output, in the output's dtype or in float64."""
        return self._reference(*self.inputs())

    def tolerance(self, unit_of_inputs: float = 0) -> np.ndarray:
        """Return how far a right kernel may be from `reference()`, per element; 0: the output must be equal.

        `unit_of_inputs` is for a kernel that first rounds its inputs to fewer bits, as for tensor cores: it
        is the unit roundoff of the rounded type, 2^-11 for tf32 and half.
        """
        return self._tolerance(unit_of_inputs, *self.inputs())

    @property
    @abstractmethod
    def flops(self) -> int:
        """Return the number of arithmetic operations that a kernel is credited with."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Return the compulsory traffic: the bytes that must cross device memory, each element once."""

    @property
    def ctype(self) -> str:
        """Return the C name of the dtype, as in `kernels.load(name, DTYPE=problem.ctype)`."""
        return self.dtypes[self.dtype]

    @property
    def c_types(self) -> dict[str, str]:
        """Return the C types of elements by the names that kernels give them: T, and others of the family."""
        return {"T": self.ctype}

    def gflops(self, seconds: float) -> float:
        """Return 10^9 arithmetic operations per second."""
        return self.flops / seconds / 1e9

    def gbytes_per_s(self, seconds: float) -> float:
        """Return GB/s of compulsory traffic (effective bandwidth), not of what the kernel really moves."""
        return self.bytes / seconds / 1e9

    def args(self, xp: Any) -> tuple[Any, ...]:
        """Make the arguments of a launch: new arrays of `xp` (CuPy or NumPy), then scalars.

        CuPy has no bfloat16 and no type of one byte such as fp8: there, these are unsigned integers of the
        same bits. Raises OutOfMemory, before it makes any array, if they do not fit the GPU or this machine.
        """
        self._refuse_beyond_memory(xp)
        made = self.inputs() if xp is np else map(as_cupy_bits, self.inputs())
        return (*(xp.asarray(array) for array in made), *self.scalars())

    def output(self, args: tuple[Any, ...]) -> Any:
        """Return the output array among the arguments of a launch."""
        return args[list(self.shapes()).index(self.output_name)]

    def verify(self, got: Any, tolerance: np.ndarray | None = None, unit_of_inputs: float = 0) -> None:
        """Raise Mismatch unless every element of the output `got` (NumPy or CuPy) is within `tolerance`.

        The default is `self.tolerance(unit_of_inputs)`. With the default, the right output of a large problem
        is computed where `got` is, on a GPU by cuBLAS, and is kept for the next call. Raises ValueError where
        `got` has another shape or dtype than the output.
        """
        if self.bytes < LARGE_BYTES or tolerance is not None:
            got = _on_host(got)
        shape, dtype = self.shapes()[self.output_name], self.output_dtype
        if got.shape != shape or got.dtype not in (dtype, as_cupy_bits(np.empty(0, dtype)).dtype):
            raise ValueError(
                f"{self.output_name} is {got.dtype} {got.shape}; it should be {dtype} {shape}. "
                "Choose the array that the kernel wrote: problem.output(args)."
            )
        module = type(got).__module__.partition(".")[0]
        try:
            expected, allowed = (
                _solved(self, unit_of_inputs, module) if tolerance is None else (self.reference(), tolerance)
            )
            if not differs(from_bits(got, dtype), expected, allowed).any():
                return
        except MemoryError:
            if module == "numpy":
                raise
            # The GPU already holds the problem's arrays, and may have no room for these.
            expected, allowed = _solved(self, unit_of_inputs, "numpy")
        wrong, before = from_bits(_on_host(got), dtype), self.output(self.inputs())
        compare(self.output_name, wrong, before, *map(_on_host, (expected, allowed)))

    def _refuse_beyond_memory(self, xp: Any) -> None:
        shapes = self.shapes()
        elements = [prod(shape) for shape in shapes.values()]
        *names, last = (f"{name} {shape}" for name, shape in shapes.items())
        what = f"{', '.join(names)} and {last} of {self.dtype}"
        on_device = sum(self.array_bytes().values())
        on_host = on_device + max(elements) * 8  # NumPy makes random numbers as float64 first
        try:
            refuse_beyond_memory(what, on_device, on_host, xp)
        except OutOfMemory:
            forget()
            refuse_beyond_memory(what, on_device, on_host, xp)

    def launch(self, tile: int, rows: int | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return grid and block for tiles of `tile` x `tile` elements, with `tile` x `rows` threads per tile.

        Without `rows`, there is one thread per element. Where the array that the grid covers has one
        dimension, a block has `tile` threads. Raises LaunchError where no GPU takes such a launch, or where
        the threads do not share a tile evenly.
        """
        if len(covered := self.shapes()[self.covered]) == 1:
            return _in_a_row(covered[0], tile, rows)
        block = _block(tile, tile if rows is None else rows)
        height, width = covered
        grid = (-(-width // tile), -(-height // tile))
        most = MAX_GRID[1]
        if grid[1] > most:
            raise LaunchError(
                f"grid {grid} has {grid[1]} blocks in y; a grid holds at most {most} there. "
                f"Choose TILE ≥ {-(-height // most)}, or fewer rows."
            )
        return grid, block


def problem(kind: str, *sizes: int, **settings: Any) -> Problem:
    """Make a family's problem, which defines what its sizes are: `problem("matmul", M, N, K, …)`.

    All families have the settings dtype (one of `Problem.dtypes`) and seed.
    """
    return problem_class(kind)(*sizes, **settings)


@cache
def families() -> tuple[str, ...]:
    """Return the families of kernels: the folders beside this file that have a family.py."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/family.py")))


@cache
def problem_class(family: str) -> type[Problem]:
    """Return the problem class of a family. Raises ValueError where there is no such family."""
    if family not in families():
        raise ValueError(f"there is no problem {family!r}. Choose one of {', '.join(families())}.")
    module = import_module(f"{__package__}.{family}.family")
    (found,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Problem) and each.__module__ == module.__name__
    )
    return found


def problem_of(row: Mapping[str, Any]) -> Problem:
    """Return the problem of a row of records.

    Where the row names the type to which a rung rounds its inputs, the problem has the family's own dtype.
    """
    kind, dtype = problem_class(str(row["problem"])), str(row["dtype"])
    sizes = [int(row[name.lower()]) for name in kind.size_names]
    return problem(kind.family, *sizes, **({"dtype": dtype} if dtype in kind.dtypes else {}))


def __getattr__(name: str) -> type[Problem]:
    """Find a family's problem class by its own name: `from labkit.kernels.problem import Matmul`."""
    if not name.startswith("_"):
        for family in families():
            if problem_class(family).__name__ == name:
                return problem_class(family)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def forget() -> None:
    """Free the right output that `verify` keeps: gigabytes for a large problem."""
    _solved.cache_clear()


@lru_cache(maxsize=1)
def _solved(problem: Problem, unit_of_inputs: float, module: str) -> tuple[Any, Any]:
    """Return reference and tolerance as arrays of `module`. Cached, as a ladder's rungs share one problem."""
    xp, made = import_module(module), problem.inputs()
    inputs = made if xp is np else [from_bits(xp.asarray(as_cupy_bits(array)), array.dtype) for array in made]
    return problem._reference(*inputs), problem._tolerance(unit_of_inputs, *inputs)


def _on_host(array: Any) -> np.ndarray:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def _in_a_row(elements: int, tile: int, rows: int | None) -> tuple[Shape, Shape]:
    """Return grid and block of one dimension."""
    if rows is not None or not 1 <= tile <= MAX_THREADS:
        raise LaunchError(
            f"a block of {tile} threads with rows={rows} does not fit an array of one dimension. "
            f"Choose TILE from 1 to {MAX_THREADS}, and no ROWS."
        )
    blocks = -(-elements // tile)
    if blocks > MAX_GRID[0]:
        raise LaunchError(f"{blocks} blocks are too many; a grid holds at most {MAX_GRID[0]}.")
    return (blocks,), (tile,)


def _block(tile: int, rows: int) -> Shape:
    """Return (tile, rows). Raises LaunchError where a block cannot have that shape."""
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
