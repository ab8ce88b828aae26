"""NumPy's matrix product, which a library computes, with the interface of our kernels."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from labkit.kernels.in_c import sizes_of
from labkit.kernels.problem import Problem


class Blas:
    """NumPy's matrix product by its library (usually OpenBLAS), in `threads` threads: `blas(A, B, C)`.

    It has the methods of a CpuKernel of the family matmul, for float32 and float64.
    """

    family = "matmul"

    def __init__(self, threads: int = 1, dtype: str = "float32") -> None:
        if threads < 1:
            raise ValueError(f"threads={threads}. Choose at least 1.")
        self.threads, self.dtype = threads, dtype
        self.name = _library()

    def __call__(self, *arrays: np.ndarray) -> None:
        """Compute C = A B for A (M,K), B (K,N), C (M,N). Raises LaunchError where they do not fit."""
        self.bind(*arrays)()

    def bind(self, *arrays: np.ndarray) -> Callable[[], object]:
        """Return the call on these arrays, checked once."""
        sizes_of(self.family, arrays, self.dtype)
        return partial(np.matmul, arrays[0], arrays[1], out=arrays[2])

    def tolerance(self, problem: Problem) -> np.ndarray:
        """Return how far each element of the output may be from the right one."""
        return problem.tolerance()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Return a context in which calls run in `threads` threads."""
        with _controller().limit(limits=self.threads, user_api="blas"):
            yield


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    np.matmul(np.ones((2, 2)), np.ones((2, 2)))  # loads the library
    return ThreadpoolController()


@cache
def _library() -> str:
    """Return name and version of the library that NumPy multiplies with."""
    for found in _controller().info():
        if found["user_api"] == "blas":
            name = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}.get(found["internal_api"], "BLAS")
            version = re.match(r"\d+(\.\d+){0,2}", found.get("version") or "")
            return f"{name} {version[0]}" if version else name
    return "NumPy's BLAS"
