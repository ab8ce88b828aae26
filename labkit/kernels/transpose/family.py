"""The transpose out (cols,rows) of in (rows,cols), both row-major.

Its kernels share one signature, in CUDA C++ and in C:

    transpose(const T* in, T* out, int rows, int cols)
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from labkit.kernels.problem import C_TYPES, INT_MAX, Problem
from simt.common.compare import unwritten


@dataclass(frozen=True)
class Transpose(Problem):
    """out (cols,rows) = transpose of in (rows,cols).

    Elements are spread over the dtype's values, so two are hardly ever equal and a misplaced one shows.
    Floats are uniform in [-1, 1]; int32 takes all values but the smallest, which fills `out` before the
    launch.
    """

    rows: int
    cols: int
    dtype: str = "float32"
    seed: int = 0

    arrays: ClassVar = {"in": ("rows", "cols"), "out": ("cols", "rows")}
    dtypes: ClassVar = C_TYPES | {"float16": "short"}  # kernels only move elements: no need for CUDA's half
    size_names = ("rows", "cols")
    output_name, covered, unit = "out", "in", "GB/s"
    check_sizes = ((1, 1), (31, 31), (33, 33), (45, 67), (256, 256))
    cpu_check_sizes = ((1, 1), (7, 9), (31, 31), (33, 33), (45, 67), (1000, 17), (256, 256))
    reference_name = "memcpy"
    copies = ("copy", "memcpy")

    @classmethod
    def benchmarked(cls, quick: bool = False) -> list[Problem]:
        """Return square matrices from 1024 on, in each dtype."""
        sizes, dtypes = (1024, 2048, 4096, 8192, 16384), ("int32", "float32", "float64")
        chosen = product(sizes[:3] if quick else sizes, dtypes[:2] if quick else dtypes)
        return [cls(n, n, dtype) for n, dtype in chosen]

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """Return a call of cudaMemcpyAsync from the device to the device."""
        source, target = args[0], args[1]
        return lambda: target.data.copy_from_device_async(source.data, source.nbytes)

    def inputs(self) -> tuple[np.ndarray, ...]:
        """Make the matrix, and `out` filled with NaN or the smallest int32."""
        rng, shape = np.random.default_rng(self.seed), (self.rows, self.cols)
        if self.dtype == "int32":
            matrix = rng.integers(-INT_MAX, INT_MAX, shape, dtype=np.int32, endpoint=True)
        else:
            matrix = rng.uniform(-1, 1, shape).astype(self.dtype)
        return matrix, unwritten(self.shapes()["out"], self.dtype)

    def _reference(self, *inputs: Any) -> Any:
        return inputs[0].T.copy()

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        return np.zeros_like(inputs[1], dtype=np.float64)  # a transpose rounds nothing

    @property
    def flops(self) -> int:
        """Return 0: a transpose computes nothing."""
        return 0

    @property
    def bytes(self) -> int:
        """Return 2 rows cols itemsize: each element is read once and written once."""
        return 2 * self.rows * self.cols * np.dtype(self.dtype).itemsize
