"""A kernel in C that NumPy arrays are given to as they are, in this process: nothing is copied."""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from labkit import kernels
from labkit.core.errors import LaunchError
from labkit.core.processor import cores
from labkit.kernels.problem import C_TYPES, INT_MAX, Matmul, Problem

# What the arrays of a family are called, and the symbolic shape of each.
_ARRAYS = {
    "matmul": (("A", "MK"), ("B", "KN"), ("C", "MN")),
    "transpose": (("in", ("rows", "cols")), ("out", ("cols", "rows"))),
}
_SIZES = {"matmul": "MNK", "transpose": ("rows", "cols")}
MOST_ROWS = 2**30  # loops count up to a block more than there are rows or columns


@dataclass(frozen=True)
class CpuKernel:
    """Kernel `name` in C, compiled for this CPU: `kernel(A, B, C)` sets C = A B, `kernel(x, out)` transposes.

    `parameters` are its macros, as in `kernels.load`. THREADS is the number of cores where it is not given.
    """

    name: str
    parameters: tuple[tuple[str, str | int], ...] = ()

    def __post_init__(self) -> None:
        if self.dtype != "float32" and "DTYPE" not in kernels.parameters(self.name):
            raise ValueError(
                f"{self.name} is written for float32 only. Leave DTYPE out, or take another rung."
            )
        _ = self._function  # what does not compile says so here

    @property
    def family(self) -> str:
        """Which problem it solves: matmul or transpose."""
        return self.name.partition("/")[0]

    @property
    def dtype(self) -> str:
        """NumPy's name of the elements' type."""
        chosen = dict(self.parameters).get("DTYPE", "float")
        for dtype, ctype in C_TYPES.items():
            if ctype == chosen:
                return dtype
        raise ValueError(f"DTYPE={chosen} is not supported. Choose one of {', '.join(C_TYPES.values())}.")

    @property
    def threads(self) -> int:
        """Threads that it runs in."""
        return int(dict(self._macros).get("THREADS", 1))

    def __call__(self, *arrays: np.ndarray) -> None:
        """Run on row-major arrays of `dtype`: A (M,K), B (K,N), C (M,N), or in (rows,cols), out (cols,rows).

        Raises LaunchError where they do not fit, before anything is written.
        """
        self.bind(*arrays)()

    def bind(self, *arrays: np.ndarray) -> Callable[[], object]:
        """The call on these arrays, checked once: while they live, it may be made again and again."""
        sizes = sizes_of(self.family, arrays, self.dtype)
        return partial(self._function, *(array.ctypes.data for array in arrays), *sizes)

    def tolerance(self, problem: Problem) -> np.ndarray:
        """How far each element of the output may be from the right one: `problem.tolerance()`, as a rule.

        For Strassen's products with l levels and k = K / 2^l: 18^l (k^2 + 6 k) u max|A| max|B|, one bound for
        all elements (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 23.3, for
        Winograd's form).
        """
        if (
            not isinstance(problem, Matmul)
            or "LEVELS" not in kernels.parameters(self.name)
            or self.dtype == "int32"
        ):
            return problem.tolerance()
        levels = int(dict(self._macros).get("LEVELS", 1))
        k = -(-problem.K // 2**levels)
        largest = [float(abs(matrix).max()) for matrix in problem.inputs()[:2]]
        bound = 18**levels * (k * k + 6 * k) * np.finfo(self.dtype).eps / 2 * largest[0] * largest[1]
        return np.full((problem.M, problem.N), bound)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Inside, calls run in `threads` threads: here always."""
        yield

    @property
    def _macros(self) -> tuple[tuple[str, str | int], ...]:
        """The parameters that this kernel has a use for, and its threads."""
        own = kernels.parameters(self.name)
        chosen = {"THREADS": cores(), **dict(self.parameters)}
        return tuple((macro, value) for macro, value in sorted(chosen.items()) if macro in own)

    @cached_property
    def _function(self) -> Any:
        return _compiled(self.name, self._macros)


class Blas:
    """NumPy's matrix product, a library's (OpenBLAS as a rule), in `threads` threads: `blas(A, B, C)`.

    The same calls as a CpuKernel of the family matmul, for float32 and float64.
    """

    family = "matmul"

    def __init__(self, threads: int = 1, dtype: str = "float32") -> None:
        if threads < 1:
            raise ValueError(f"threads={threads}. Choose at least 1.")
        self.threads, self.dtype = threads, dtype
        self.name = _library()

    def __call__(self, *arrays: np.ndarray) -> None:
        """C = A B for A (M,K), B (K,N), C (M,N). Raises LaunchError where they do not fit."""
        self.bind(*arrays)()

    def bind(self, *arrays: np.ndarray) -> Callable[[], object]:
        """The call on these arrays, checked once."""
        sizes_of(self.family, arrays, self.dtype)
        return partial(np.matmul, arrays[0], arrays[1], out=arrays[2])

    def tolerance(self, problem: Problem) -> np.ndarray:
        """How far each element of the output may be from the right one."""
        return problem.tolerance()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Inside, calls run in `threads` threads."""
        with _controller().limit(limits=self.threads, user_api="blas"):
            yield


def sizes_of(family: str, arrays: Sequence[np.ndarray], dtype: str) -> tuple[int, ...]:
    """The sizes that belong to the arrays of a call: M, N, K or rows, cols. Raises LaunchError."""
    expected = _ARRAYS[family]
    if len(arrays) != len(expected):
        raise LaunchError(
            f"{family} takes {len(expected)} arrays: {_listed(family)}; {len(arrays)} were given."
        )
    sizes: dict[str, int] = {}
    for (name, letters), array in zip(expected, arrays, strict=True):
        _check_array(name, array, dtype)
        for letter, size in zip(letters, array.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise LaunchError(
                    f"{name} has shape {array.shape}, but {letter} = {sizes[letter]} in those before it. "
                    f"{family} takes {_listed(family)}."
                )
    out, name = arrays[-1], expected[-1][0]
    if not out.flags.writeable:
        raise LaunchError(f"{name} is read-only. Pass an array that can be written, such as np.empty(...).")
    if any(np.may_share_memory(out, array) for array in arrays[:-1]):
        raise LaunchError(
            f"{name} overlaps an input, which would change while it is read. Pass another array."
        )
    return tuple(sizes[letter] for letter in _SIZES[family])


def _check_array(name: str, array: np.ndarray, dtype: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise LaunchError(f"{name} must be a NumPy array with rows and columns, not {_described(array)}.")
    if array.dtype != dtype:
        raise LaunchError(
            f"{name} is {array.dtype}; the kernel is compiled for {dtype}: load it with DTYPE=…."
        )
    if not array.flags.c_contiguous:
        raise LaunchError(f"{name} is not contiguous, row after row. Pass np.ascontiguousarray({name}).")
    if not (0 < array.size <= INT_MAX and max(array.shape) <= MOST_ROWS):
        raise LaunchError(
            f"{name} has shape {array.shape}; the kernels count with an int: 1 to {INT_MAX} elements, at "
            f"most {MOST_ROWS} rows or columns."
        )


def _described(value: object) -> str:
    return f"one of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _listed(family: str) -> str:
    return ", ".join(f"{name} ({', '.join(letters)})" for name, letters in _ARRAYS[family])


@cache
def _compiled(name: str, macros: tuple[tuple[str, str | int], ...]) -> Any:
    """The C function. ctypes lets other Python threads run while it runs."""
    from labkit.c.compile import compile_c

    options = [*(f"-D{macro}={value}" for macro, value in macros), "-pthread", "-D_GNU_SOURCE"]
    library = compile_c(kernels.whole_source(name), options)
    family = name.partition("/")[0]
    function = getattr(ctypes.CDLL(str(library)), family)
    function.argtypes = [*[ctypes.c_void_p] * len(_ARRAYS[family]), *[ctypes.c_int] * len(_SIZES[family])]
    function.restype = None
    return function


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    np.matmul(np.ones((2, 2)), np.ones((2, 2)))  # the library is loaded now
    return ThreadpoolController()


@cache
def _library() -> str:
    """Name and version of the library that NumPy multiplies with."""
    for found in _controller().info():
        if found["user_api"] == "blas":
            name = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}.get(found["internal_api"], "BLAS")
            version = re.match(r"\d+(\.\d+){0,2}", found.get("version") or "")
            return f"{name} {version[0]}" if version else name
    return "NumPy's BLAS"
