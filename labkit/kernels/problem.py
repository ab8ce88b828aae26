"""The two problems of the course: the matrix product C = alpha A B + beta C, and the transpose.

A problem makes its inputs from a seed, knows the right result and how far rounding may take a kernel from
it, how to launch a kernel, and how many operations and bytes it stands for.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from labkit.core.compare import compare, differs, unwritten
from labkit.core.errors import LaunchError, OutOfMemory
from labkit.core.limits import MAX_GRID, MAX_THREADS
from labkit.core.memory import refuse_beyond_memory

C_TYPES = {"float32": "float", "float64": "double", "int32": "int"}
INT_INPUT = 8  # int32 matrices of a product hold -8..8
INT_MAX = 2**31 - 1
BEYOND = 2**12  # how far kernels count past a row or column: k0 += TILE_K, and STAGES tiles ahead
LARGE_BYTES = 2**24  # of a problem: from here on a result on the GPU is verified there

Shape = tuple[int, int]


class Problem(ABC):
    """What `Matmul` and `Transpose` share."""

    output_name: ClassVar[str]
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in C_TYPES:
            raise ValueError(f"dtype {self.dtype!r} is not supported. Choose one of {', '.join(C_TYPES)}.")
        for name, (rows, cols) in self.shapes().items():
            if rows * cols > INT_MAX - BEYOND:
                raise ValueError(
                    f"{name} ({rows}, {cols}) has {rows * cols} elements; the kernels count with an int, "
                    f"which ends at {INT_MAX}, up to {BEYOND} beyond the edge. Choose smaller sizes."
                )

    @abstractmethod
    def shapes(self) -> dict[str, Shape]:
        """Shape of each matrix, by its name in the kernel's signature and in that order."""

    @abstractmethod
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The host arrays before a launch, the output among them, made anew from the seed."""

    @abstractmethod
    def scalars(self) -> tuple[np.generic, ...]:
        """What the kernel takes after its arrays."""

    @abstractmethod
    def _reference(self, *inputs: Any) -> Any:
        """`reference` from `inputs()` as arrays of NumPy or CuPy."""

    @abstractmethod
    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        """`tolerance` from `inputs()` as arrays of NumPy or CuPy."""

    def reference(self) -> np.ndarray:
        """The right output: of a product in float64, or exact in int32; of a transpose in its dtype."""
        return self._reference(*self.inputs())

    def tolerance(self, unit_of_inputs: float = 0) -> np.ndarray:
        """How far each element of a right kernel's output may be from `reference()`; 0: it must be equal.

        Of a product of floats: (gamma(K+2, u) + gamma(K+2, 2^-53)) (|alpha| |A| |B| + |beta| |C|), with
        gamma(n, u) = n u / (1 - n u) and u = 2^-24 for float32, 2^-53 for float64. A product of any order of
        summation, with or without fused multiply-add, is within gamma(K, u) |A| |B| of the exact one, element
        by element (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 3.5); alpha, beta and
        their sum round twice more. The second gamma is the error of `reference()`. The usual error grows with
        sqrt(K) and stays far below; a missing or doubled term is far above.

        `unit_of_inputs` is for a kernel that rounds A and B to shorter numbers before it multiplies, as for
        tensor cores: their unit roundoff, 2^-11 for tf32 and half. It is told of each element of A and B, or
        2^-24 for the smallest, as half has no more digits there. Then u is 2^-23, since tensor cores cut sums
        off where others round (Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021).
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
        elements = [rows * cols for rows, cols in shapes.values()]
        *names, last = (f"{name} {shape}" for name, shape in shapes.items())
        what = f"{', '.join(names)} and {last} of {self.dtype}"
        on_device = sum(elements) * itemsize
        on_host = on_device + max(elements) * 8  # random numbers are float64 at first
        try:
            refuse_beyond_memory(what, on_device, on_host, xp)
        except OutOfMemory:
            forget()
            refuse_beyond_memory(what, on_device, on_host, xp)

    def launch(self, tile: int, rows: int | None = None) -> tuple[Shape, Shape]:
        """Grid and block for tiles of `tile` x `tile` elements, each with `tile` x `rows` threads.

        Without `rows` every element has its thread. Raises LaunchError where no GPU takes such a launch, or
        where the threads do not share a tile evenly.
        """
        block = _block(tile, tile if rows is None else rows)
        height, width = self._launched_shape()
        grid = (-(-width // tile), -(-height // tile))
        most = MAX_GRID[1]
        if grid[1] > most:
            raise LaunchError(
                f"grid {grid} has {grid[1]} blocks in y; a grid holds at most {most} there. "
                f"Choose TILE ≥ {-(-height // most)}, or fewer rows."
            )
        return grid, block

    @abstractmethod
    def _launched_shape(self) -> Shape:
        """Shape of the matrix that the grid covers."""


@dataclass(frozen=True)
class Matmul(Problem):
    """C (M,N) = alpha A (M,K) B (K,N) + beta C.

    Floats are uniform in [-1, 1]. int32 elements are -8..8, so that |alpha| 64 K + |beta| 8 bounds every sum:
    what could overflow raises ValueError. alpha and beta are rounded to the dtype, as the kernel gets them.
    """

    M: int
    N: int
    K: int
    dtype: str = "float32"
    alpha: float = 1
    beta: float = 0
    seed: int = 0
    output_name: ClassVar[str] = "C"

    def __post_init__(self) -> None:
        _check_sizes(M=self.M, N=self.N, K=self.K)
        super().__post_init__()
        _check_scalars(self.dtype, alpha=self.alpha, beta=self.beta)
        if self.dtype == "int32":
            bound = int(max(1, abs(self.alpha)) * INT_INPUT**2 * self.K + abs(self.beta) * INT_INPUT)
            if bound > INT_MAX:
                raise ValueError(
                    f"K={self.K}, alpha={self.alpha}, beta={self.beta} give sums of up to {bound}; int32 "
                    f"ends at {INT_MAX}. Choose a smaller K, alpha or beta, or a float dtype."
                )

    def __str__(self) -> str:
        scalars = "" if (self.alpha, self.beta) == (1, 0) else f" alpha={self.alpha:g} beta={self.beta:g}"
        return f"matmul M={self.M} N={self.N} K={self.K} {self.dtype}{scalars}"

    def shapes(self) -> dict[str, Shape]:
        """A (M,K), B (K,N), C (M,N)."""
        return {"A": (self.M, self.K), "B": (self.K, self.N), "C": (self.M, self.N)}

    def inputs(self) -> tuple[np.ndarray, ...]:
        """A, B and C. With beta == 0 no kernel may read C, and it is filled with NaN or the smallest
        int32.
        """
        rng = np.random.default_rng(self.seed)
        a, b, c = (self._random(rng, shape) for shape in self.shapes().values())
        return a, b, c if self.beta else unwritten(c.shape, self.dtype)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if self.dtype == "int32":
            return rng.integers(-INT_INPUT, INT_INPUT, shape, dtype=np.int32, endpoint=True)
        return rng.uniform(-1, 1, shape).astype(self.dtype)

    def scalars(self) -> tuple[np.generic, ...]:
        """M, N and K as int32, alpha and beta in the dtype."""
        scalar = np.dtype(self.dtype).type
        return (*map(np.int32, (self.M, self.N, self.K)), scalar(self.alpha), scalar(self.beta))

    def _reference(self, *inputs: Any) -> Any:
        exact = _in_float64(*inputs, *map(float, self.scalars()[3:]))
        # all partial sums of int32 are whole numbers that float64 holds
        return exact.astype(np.int32) if self.dtype == "int32" else exact

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        if self.dtype == "int32":
            return np.zeros_like(inputs[2], dtype=np.float64)
        a, b, c = map(abs, inputs)
        alpha, beta = (abs(float(scalar)) for scalar in self.scalars()[3:])
        unit = float(np.finfo(self.dtype).eps) / (1 if unit_of_inputs else 2)
        relative = _gamma(self.K + 2, unit) + _gamma(self.K + 2, 2.0**-53)
        if not unit_of_inputs:
            return relative * _in_float64(a, b, c, alpha, beta)
        relative += (2 * unit_of_inputs + unit_of_inputs**2) * (1 + relative)
        subnormal = (
            alpha * 2.0**-24 * (a.sum(1, np.float64)[:, None] + b.sum(0, np.float64) + self.K * 2.0**-25)
        )
        return relative * _in_float64(a, b, c, alpha, beta) + subnormal

    @property
    def flops(self) -> int:
        """2 M N K: a multiplication and an addition a term. As is usual, alpha and beta count nothing."""
        return 2 * self.M * self.N * self.K

    @property
    def bytes(self) -> int:
        """(M K + K N + M N) itemsize, and M N itemsize more where beta != 0 makes the kernel read C."""
        elements = self.M * self.K + self.K * self.N + self.M * self.N * (2 if self.beta else 1)
        return elements * np.dtype(self.dtype).itemsize

    def _launched_shape(self) -> Shape:
        return self.M, self.N


@dataclass(frozen=True)
class Transpose(Problem):
    """out (cols,rows) = transpose of in (rows,cols).

    Elements are spread over the dtype's values, so that two are hardly ever equal and a misplaced one shows:
    floats uniform in [-1, 1], int32 over all values but the smallest, which fills `out` before the launch.
    """

    rows: int
    cols: int
    dtype: str = "float32"
    seed: int = 0
    output_name: ClassVar[str] = "out"

    def __post_init__(self) -> None:
        _check_sizes(rows=self.rows, cols=self.cols)
        super().__post_init__()

    def __str__(self) -> str:
        return f"transpose rows={self.rows} cols={self.cols} {self.dtype}"

    def shapes(self) -> dict[str, Shape]:
        """`in` (rows,cols), `out` (cols,rows)."""
        return {"in": (self.rows, self.cols), "out": (self.cols, self.rows)}

    def inputs(self) -> tuple[np.ndarray, ...]:
        """The matrix, and `out` filled with NaN or the smallest int32."""
        rng, shape = np.random.default_rng(self.seed), (self.rows, self.cols)
        if self.dtype == "int32":
            matrix = rng.integers(-INT_MAX, INT_MAX, shape, dtype=np.int32, endpoint=True)
        else:
            matrix = rng.uniform(-1, 1, shape).astype(self.dtype)
        return matrix, unwritten(self.shapes()["out"], self.dtype)

    def scalars(self) -> tuple[np.generic, ...]:
        """The numbers of rows and columns as int32."""
        return np.int32(self.rows), np.int32(self.cols)

    def _reference(self, *inputs: Any) -> Any:
        return inputs[0].T.copy()

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        return np.zeros_like(inputs[1], dtype=np.float64)  # a transpose rounds nothing

    @property
    def flops(self) -> int:
        """0: a transpose computes nothing."""
        return 0

    @property
    def bytes(self) -> int:
        """2 rows cols itemsize: each element is read once and written once."""
        return 2 * self.rows * self.cols * np.dtype(self.dtype).itemsize

    def _launched_shape(self) -> Shape:
        return self.rows, self.cols


def problem(kind: str, *sizes: int, **settings: Any) -> Problem:
    """`problem("matmul", M, N, K, …)` or `problem("transpose", rows, cols, …)`.

    Settings of both are dtype ("float32", "float64" or "int32") and seed; of matmul also alpha and beta.
    """
    kinds: dict[str, type[Problem]] = {"matmul": Matmul, "transpose": Transpose}
    if kind not in kinds:
        raise ValueError(f"there is no problem {kind!r}. Choose one of {', '.join(kinds)}.")
    return kinds[kind](*sizes, **settings)


def forget() -> None:
    """Give back the memory of the right output that `verify` keeps: gigabytes, of a large problem."""
    _solved.cache_clear()


@lru_cache(maxsize=1)
def _solved(problem: Problem, unit_of_inputs: float, module: str) -> tuple[Any, Any]:
    """Reference and tolerance of `problem` as arrays of `module`. Kept: a ladder's rungs have one problem."""
    xp = import_module(module)
    inputs = [xp.asarray(array) for array in problem.inputs()]
    return problem._reference(*inputs), problem._tolerance(unit_of_inputs, *inputs)


def _in_float64(a: Any, b: Any, c: Any, alpha: float, beta: float) -> Any:
    """C = alpha A B + beta C; with beta == 0 C is not read."""
    product = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    return product + beta * c.astype(np.float64) if beta else product


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


def _check_scalars(dtype: str, **scalars: float) -> None:
    largest = INT_MAX if dtype == "int32" else float(np.finfo(dtype).max)
    for name, value in scalars.items():
        if not abs(value) <= largest:
            raise ValueError(f"{name}={value} does not fit {dtype}. Choose one of at most {largest:.6g}.")
        if dtype == "int32" and value != int(value):
            raise ValueError(f"{name}={value} is not a whole number. Choose one, or a float dtype.")


def _gamma(n: int, unit: float) -> float:
    return n * unit / (1 - n * unit)
