"""The matrix product C (M,N) = alpha A (M,K) B (N,K)^T + beta C of few bits, for tensor cores.

All arrays are row-major, so that rows of A and of B are contiguous in K: B is stored as weights are, and as
wgmma takes every type. Sums are float32. The kernels share one signature in CUDA C++:

    tensor_matmul(const T* A, const T* B, Out* C, int M, int N, int K, float alpha, float beta)

Rungs that copy by TMA take tensor maps in the place of arrays, as their heads say (`labkit.kernels.heads`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import ml_dtypes
import numpy as np

from labkit.kernels.problem import Problem, Shape
from simt.common.compare import unwritten

QUICK, LARGE = (4096,), (4096, 8192)  # M, N and K of `labkit bench`
QUARTERS = 4  # fp8 elements are multiples of 1/4 in [-1, 1]


class Kind(NamedTuple):
    """The NumPy types of A and B, and of C."""

    operand: np.dtype
    result: np.dtype


KINDS = {
    "float16": Kind(np.dtype(np.float16), np.dtype(np.float16)),
    "bfloat16": Kind(np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.bfloat16)),
    "tf32": Kind(np.dtype(np.float32), np.dtype(np.float32)),
    "fp8": Kind(np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(np.float16)),
}


@dataclass(frozen=True)
class TensorMatmul(Problem):
    """C (M,N) = alpha A (M,K) B (N,K)^T + beta C, with A, B and C of `dtype`; for fp8, C is float16.

    Elements are uniform in [-1, 1], rounded to their type. tf32 is float32 whose last 13 bits are 0, so that
    hardware that rounds and hardware that cuts these bits off get the same. fp8 (e4m3) elements are
    multiples of 1/4: Hopper's tensor cores keep 14 bits of a sum of fp8 products (DeepSeek-V3 Technical
    Report, 2024, section 3.3.2), and sums of these, multiples of 1/16, are exact below 2^9. Random ones stay
    below up to K = 2^15 or so. alpha and beta are float32.
    """

    M: int
    N: int
    K: int
    dtype: str = "float16"
    alpha: float = 1
    beta: float = 0
    seed: int = 0

    arrays: ClassVar = {"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N")}
    size_names = ("M", "N", "K")
    output_name = covered = "C"
    dtypes: ClassVar = {
        "float16": "half",
        "bfloat16": "__nv_bfloat16",
        "tf32": "tf32",
        "fp8": "__nv_fp8_e4m3",
    }
    needs: ClassVar = {"bfloat16": "sm_80", "tf32": "sm_80", "fp8": "sm_89"}
    # Those whose sizes are multiples of 16 suit tensor maps, too: smaller than a tile, and beyond one.
    check_sizes = (
        *((1, 1, 1), (16, 16, 16), (45, 29, 67), (33, 48, 80), (31, 17, 32), (150, 144, 112)),
        (256, 256, 256),
    )
    variants: ClassVar = ({}, {"alpha": 3, "beta": -2})
    variant_hints = (
        "It is right only where alpha is 1 and beta is 0: look at alpha * sum + beta * C.",
        "It is wrong only where beta is 0: C may hold NaN then, and 0 * NaN is NaN. Do not read it.",
    )
    reference_name = "cublas"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.factors.items():
            if not abs(value) <= float(np.finfo(np.float32).max):
                raise ValueError(f"{name}={value} does not fit float32. Choose a smaller one.")

    def __str__(self) -> str:
        scalars = "" if (self.alpha, self.beta) == (1, 0) else f" alpha={self.alpha:g} beta={self.beta:g}"
        return super().__str__() + scalars

    @property
    def factors(self) -> dict[str, float]:
        """Return alpha and beta."""
        return {"alpha": self.alpha, "beta": self.beta}

    @property
    def reads_output(self) -> bool:
        """Return True where beta is not 0, as C is then read."""
        return bool(self.beta)

    @classmethod
    def benchmarked(cls, quick: bool = False) -> list[Problem]:
        """Return square products of each type, from 1024 on."""
        return [cls(n, n, n, dtype) for dtype, n in product(cls.dtypes, QUICK if quick else LARGE)]

    @property
    def c_types(self) -> dict[str, str]:
        """Return the C types of the elements of A and B (T), and of C (Out)."""
        return {"T": self.ctype, "Out": "half" if self.dtype == "fp8" else self.ctype}

    def array_dtypes(self) -> dict[str, np.dtype]:
        """Return the NumPy types of A, B and C by name."""
        kind = KINDS[self.dtype]
        return {"A": kind.operand, "B": kind.operand, "C": kind.result}

    def inputs(self) -> tuple[np.ndarray, ...]:
        """Make A, B and C. With beta == 0 no kernel may read C; it holds NaN."""
        (operand, result), (*operands, of_c) = KINDS[self.dtype], self.shapes().values()
        rng = np.random.default_rng(self.seed)
        a, b = (self._random(rng, shape).astype(operand) for shape in operands)
        return a, b, self._random(rng, of_c).astype(result) if self.beta else unwritten(of_c, result.name)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if self.dtype == "fp8":
            quarters = rng.integers(-QUARTERS, QUARTERS, shape, dtype=np.int8, endpoint=True)
            return quarters / np.float32(QUARTERS)
        drawn = 2 * rng.random(shape, dtype=np.float32) - 1
        if self.dtype == "tf32":
            drawn.view(np.uint32)[...] &= np.uint32(0xFFFF_E000)
        return drawn

    def scalars(self) -> tuple[np.generic, ...]:
        """Return M, N and K as int32, alpha and beta as float32."""
        return (*super().scalars(), np.float32(self.alpha), np.float32(self.beta))

    def _reference(self, *inputs: Any) -> Any:
        return _in_float64(*inputs, *map(float, self.scalars()[3:]))

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        """Bound the error of each element of C, by that of the float32 result and the rounding of the output.

        Products of two elements are exact in float32. Tensor cores add n of them, and the sum so far, at
        once: they cut each addend off at 2^-23 of the largest, and then the result at 24 bits (Fasi et al.,
        Numerical behavior of NVIDIA tensor cores, 2021). This costs at most (n + 2) 2^-23 |A| |B|, and n is 4
        or more: K / 4 such steps are within gamma(6 K / 4, 2^-23) |A| |B|, which also covers sums one by one,
        and partial sums that are added at the end. fp8 sums are exact. alpha, beta and their sum round three
        times more. The float32 result is within `before`. The output's type, of unit roundoff u and smallest
        number s, then rounds by at most u |C| + s/2. The error of `reference()` is gamma(K + 2, 2^-53).
        """
        a, b, c = map(abs, inputs)
        alpha, beta = (abs(float(scalar)) for scalar in self.scalars()[3:])
        steps = 3 if self.dtype == "fp8" else 6 * -(-self.K // 4) + 3
        relative = _gamma(steps, 2.0**-23) + _gamma(self.K + 2, 2.0**-53)
        before = relative * _in_float64(a, b, c, alpha, beta)
        output = ml_dtypes.finfo(KINDS[self.dtype].result)
        unit, smallest = float(output.eps) / 2, float(output.smallest_subnormal)
        return before + unit * (abs(self._reference(*inputs)) + before) + smallest / 2

    @property
    def flops(self) -> int:
        """Return 2 M N K: a multiplication and an addition per term. By convention alpha and beta add 0."""
        return 2 * self.M * self.N * self.K

    @property
    def bytes(self) -> int:
        """Return the bytes of A, B and C, those of C twice where beta != 0 makes the kernel read it."""
        sizes = self.array_bytes()
        return sum(sizes.values()) + (sizes["C"] if self.beta else 0)

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """Return a call of cuBLAS on arrays that exist: cublasGemmEx, or cublasLtMatmul for fp8."""
        from labkit.devices.cublas import product_call  # imported here: it needs CuPy

        a, b, c, *_, alpha, beta = args
        return product_call(self.dtype, a, b, c, float(alpha), float(beta))


def _in_float64(a: Any, b: Any, c: Any, alpha: float, beta: float) -> Any:
    """Compute C = alpha A B^T + beta C in float64; with beta == 0, C is not read."""
    result = alpha * (a.astype(np.float64) @ b.astype(np.float64).T)
    return result + beta * c.astype(np.float64) if beta else result


def _gamma(n: int, unit: float) -> float:
    return n * unit / (1 - n * unit)
