"""The sum of an array: out (1) += sum of x (n).

Its kernels share one signature, in CUDA C++ and in C:

    reduction(const T* x, T* out, int n)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labkit.kernels.problem import INT_MAX, Problem

LARGEST = 4  # int32 elements are -4..4, floats a quarter of that


@dataclass(frozen=True)
class Reduction(Problem):
    """out (1) += sum of x (n). Each launch adds to `out`, which starts at 0.

    Floats are multiples of 1/4 in [-1, 1], int32 are -4..4. Sums of such numbers are exact while they stay
    below 2^22 in float32, as those of random numbers do up to n = 2^30. So every order of additions gives the
    same result, and one element too many or too few shows. Raises ValueError where n elements of int32 could
    overflow.
    """

    n: int
    dtype: str = "float32"
    seed: int = 0

    arrays: ClassVar = {"x": ("n",), "out": (1,)}
    size_names = ("n",)
    output_name, covered, unit = "out", "x", "GB/s"
    check_sizes = ((1,), (31,), (33,), (1000,), (5003,), (70001,))
    cpu_check_sizes = ((1,), (7,), (31,), (33,), (1000,), (70001,))
    reference_name = "cub"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype == "int32" and self.n * LARGEST > INT_MAX:
            raise ValueError(
                f"n={self.n} elements give sums of up to {self.n * LARGEST}; int32 ends at {INT_MAX}. "
                "Choose a smaller n, or a float dtype."
            )

    @property
    def reads_output(self) -> bool:
        """Return True: each launch adds to `out`."""
        return True

    @classmethod
    def benchmarked(cls, quick: bool = False) -> list[Problem]:
        """Return 2^20 to 2^28 elements, and the largest in each dtype."""
        floats = (cls(2**power) for power in ((20, 24) if quick else (20, 22, 24, 26, 28)))
        return [*floats] if quick else [*floats, cls(2**28, "int32"), cls(2**27, "float64")]

    def inputs(self) -> tuple[np.ndarray, ...]:
        """Make the array, and `out` with 0."""
        rng = np.random.default_rng(self.seed)
        x = rng.integers(-LARGEST, LARGEST, self.n, dtype=np.int8, endpoint=True).astype(self.dtype)
        return x if self.dtype == "int32" else x / x.dtype.type(LARGEST), np.zeros(1, self.dtype)

    def _reference(self, *inputs: Any) -> Any:
        x, out = inputs
        exact = x.sum(dtype="int64" if self.dtype == "int32" else "float64")
        return (out + exact).astype(self.dtype)

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        return np.zeros_like(inputs[1], dtype=np.float64)  # exact, in every order of additions

    @property
    def flops(self) -> int:
        """Return n: one addition per element."""
        return self.n

    @property
    def bytes(self) -> int:
        """Return n itemsize: each element is read once."""
        return self.n * np.dtype(self.dtype).itemsize

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """Return a call of CuPy's sum, which is NVIDIA's library CUB, into `out`."""
        import cupy

        x, out = args[:2]
        return lambda: cupy.sum(x, dtype=x.dtype, out=out[0])
