"""Kernels in C, called in this process on NumPy arrays, without copies."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from labkit import kernels
from labkit.kernels.problem import C_TYPES, INT_MAX, Problem, problem_class
from simt.common.errors import LaunchError
from simt.common.processor import cores

MOST_ROWS = 2**30  # loops count up to a block more than there are rows or columns


@dataclass(frozen=True)
class CpuKernel:
    """Kernel `name` in C, compiled for this CPU. Call it with NumPy arrays: `kernel(A, B, C)`.

    `parameters` are its macros, as in `kernels.load`. THREADS defaults to the number of cores.
    """

    name: str
    parameters: tuple[tuple[str, str | int], ...] = ()

    def __post_init__(self) -> None:
        if self.dtype != "float32" and "DTYPE" not in kernels.parameters(self.name):
            raise ValueError(
                f"{self.name} is written for float32 only. Leave DTYPE out, or take another rung."
            )
        _ = self._function  # compile now, so that errors show here

    @property
    def family(self) -> str:
        """Return the family whose problem it solves."""
        return self.name.partition("/")[0]

    @property
    def dtype(self) -> str:
        """Return NumPy's name of the elements' type."""
        chosen = dict(self.parameters).get("DTYPE", "float")
        for dtype, ctype in C_TYPES.items():
            if ctype == chosen:
                return dtype
        raise ValueError(f"DTYPE={chosen} is not supported. Choose one of {', '.join(C_TYPES.values())}.")

    @property
    def threads(self) -> int:
        """Return the number of threads that it runs in."""
        return int(dict(self._macros).get("THREADS", 1))

    def __call__(self, *arrays: np.ndarray) -> None:
        """Run on row-major arrays of `dtype`, in the order of the kernel's signature.

        Raises LaunchError where they do not fit, before anything is written.
        """
        self.bind(*arrays)()

    def bind(self, *arrays: np.ndarray) -> Callable[[], object]:
        """Return the call on these arrays, checked once; it may be repeated as long as the arrays live."""
        sizes = sizes_of(self.family, arrays, self.dtype)
        return partial(self._function, *(array.ctypes.data for array in arrays), *sizes)

    def tolerance(self, problem: Problem) -> np.ndarray:
        """Return how far each element of the output may be from the right one."""
        return problem.tolerance_on_cpu({**kernels.defaults(self.name), **dict(self._macros)})

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Return a context in which calls run in `threads` threads; for this kernel they always do."""
        yield

    @property
    def _macros(self) -> tuple[tuple[str, str | int], ...]:
        """Return the parameters that this kernel uses, and its number of threads."""
        own = kernels.parameters(self.name)
        chosen = {"THREADS": cores(), **dict(self.parameters)}
        return tuple((macro, value) for macro, value in sorted(chosen.items()) if macro in own)

    @cached_property
    def _function(self) -> Any:
        return _compiled(self.name, self._macros)


def sizes_of(family: str, arrays: Sequence[np.ndarray], dtype: str) -> tuple[int, ...]:
    """Return the sizes of a call's arrays, in the signature's order. Raises LaunchError for wrong arrays."""
    kind = problem_class(family)
    expected = list(kind.arrays.items())
    if len(arrays) != len(expected):
        raise LaunchError(
            f"{family} takes {len(expected)} arrays: {_listed(family)}; {len(arrays)} were given."
        )
    sizes: dict[str, int] = {}
    for (name, letters), array in zip(expected, arrays, strict=True):
        _check_array(name, array, dtype, len(letters))
        for letter, size in zip(letters, array.shape, strict=True):
            wanted = letter if isinstance(letter, int) else sizes.setdefault(letter, size)
            if wanted != size:
                known = "" if letter == wanted else f", but {letter} = {wanted} in those before it"
                raise LaunchError(f"{name} has shape {array.shape}{known}. {family} takes {_listed(family)}.")
    at = list(kind.arrays).index(kind.output_name)
    out, name = arrays[at], kind.output_name
    if not out.flags.writeable:
        raise LaunchError(f"{name} is read-only. Pass an array that can be written, such as np.empty(...).")
    if any(np.may_share_memory(out, array) for array in (*arrays[:at], *arrays[at + 1 :])):
        raise LaunchError(
            f"{name} overlaps an input, which would change while it is read. Pass another array."
        )
    return tuple(sizes[letter] for letter in kind.size_names)


def _check_array(name: str, array: np.ndarray, dtype: str, ndim: int) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != ndim:
        form = "with rows and columns" if ndim == 2 else f"of {ndim} dimension{'s' * (ndim > 1)}"
        raise LaunchError(f"{name} must be a NumPy array {form}, not {_described(array)}.")
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
    arrays = problem_class(family).arrays.items()
    return ", ".join(f"{name} ({', '.join(map(str, letters))})" for name, letters in arrays)


@cache
def _compiled(name: str, macros: tuple[tuple[str, str | int], ...]) -> Any:
    """Return the C function. ctypes lets other Python threads run while it runs."""
    from labkit.c.compile import compile_c

    options = [*(f"-D{macro}={value}" for macro, value in macros), "-pthread", "-D_GNU_SOURCE"]
    library = compile_c(kernels.source_with_includes(name), options)
    family = name.partition("/")[0]
    function = getattr(ctypes.CDLL(str(library)), family)
    kind = problem_class(family)
    pointers, sizes = [ctypes.c_void_p] * len(kind.arrays), [ctypes.c_int] * len(kind.size_names)
    function.argtypes = [*pointers, *sizes]
    function.restype = None
    return function
