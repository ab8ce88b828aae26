"""The matrix product C (M,N) = alpha A (M,K) B (K,N) + beta C, all row-major.

Its kernels share one signature in CUDA C++, for a GPU, and one in C, for the CPU, where alpha = 1 and beta =
0:

    matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)
    matmul(const T *A, const T *B, T *C, int M, int N, int K)
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labkit.kernels.problem import INT_MAX, Problem, Shape
from simt.common.compare import differs, unwritten

INT_INPUT = 8  # int32 matrices hold -8..8
QUICK, LARGE = (256, 1024, 2048), (256, 512, 1024, 2048, 4096, 8192)  # M, N and K of `labkit bench`
OF_LIBRARY = 680  # the size of report cublas-gap
EXAMINED = ("tuned", "tensor_cores", "cublas")  # float32 products whose error is recorded too


@dataclass(frozen=True)
class Matmul(Problem):
    """C (M,N) = alpha A (M,K) B (K,N) + beta C.

    Floats are uniform in [-1, 1]. int32 elements are -8..8, so |alpha| 64 K + |beta| 8 bounds every sum;
    sizes for which a sum could overflow raise ValueError. alpha and beta are rounded to the dtype that the
    kernel gets.
    """

    M: int
    N: int
    K: int
    dtype: str = "float32"
    alpha: float = 1
    beta: float = 0
    seed: int = 0

    arrays: ClassVar = {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")}
    size_names = ("M", "N", "K")
    output_name = covered = "C"
    check_sizes = ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67), (256, 256, 256))
    cpu_check_sizes = (
        *((1, 1, 1), (7, 7, 7), (31, 31, 31), (33, 33, 33)),
        *((45, 29, 67), (1000, 17, 333), (256, 256, 256)),
    )
    variants: ClassVar = ({}, {"alpha": 3, "beta": -2})
    variant_hints = (
        "It is right only where alpha is 1 and beta is 0: look at alpha * sum + beta * C.",
        "It is wrong only where beta is 0: C may hold NaN then, and 0 * NaN is NaN. Do not read it.",
    )
    reference_name = "cublas"
    ceiling = "peak"
    beside = ("few_rows", "few_columns")
    rounding: ClassVar = {"tensor_cores": {"tf32": 8, "half": 7}}
    rounding_unit = 2.0**-11
    cpu_rungs: ClassVar = {
        "cpu_naive": "cpu_1_loops",
        "cpu_loop_order": "cpu_2_loop_order",
        "cpu_avx": "cpu_3_simd",
        "cpu_avx_blocked": "cpu_4_blocked",
        "cpu_avx_blocked_bt": "cpu_5_blocked_bt",
        "cpu_register_tile": "cpu_6_register_tile",
        "cpu_packed": "cpu_7_packed",
        "cpu_threads": "cpu_8_threads",
        "cpu_strassen": "cpu_9_strassen",
    }

    def __post_init__(self) -> None:
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
        """Return square products from 256 on."""
        return [cls(n, n, n) for n in (QUICK if quick else LARGE)]

    @classmethod
    def benchmarked_rungs(cls, quick: bool = False) -> Iterator[tuple[str, Problem, dict[str, int]]]:
        """Yield naive and tiled in float64 as well; N = 680, as in report cublas-gap."""
        for n in () if quick else LARGE:
            for rung in ("naive", "tiled", "cublas"):
                yield rung, cls(n, n, n, dtype="float64"), {}
        small = cls(OF_LIBRARY, OF_LIBRARY, OF_LIBRARY)
        yield from ((rung, small, {"TILE": 32}) for rung in ("naive", "tiled", "tiled_unrolled"))
        yield "cublas", small, {}

    def inputs(self) -> tuple[np.ndarray, ...]:
        """Make A, B and C. With beta == 0 no kernel may read C; it holds NaN or the smallest int32."""
        rng = np.random.default_rng(self.seed)
        a, b, c = (self._random(rng, shape) for shape in self.shapes().values())
        return a, b, c if self.beta else unwritten(c.shape, self.dtype)

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if self.dtype == "int32":
            return rng.integers(-INT_INPUT, INT_INPUT, shape, dtype=np.int32, endpoint=True)
        return rng.uniform(-1, 1, shape).astype(self.dtype)

    def drawn(self, rng: Any, shape: Shape) -> Any:
        """Draw a matrix as `inputs` does, with a generator of NumPy or CuPy, where that one is."""
        if self.dtype == "int32":
            return rng.integers(-INT_INPUT, INT_INPUT + 1, shape, dtype=np.int32)
        return 2 * rng.random(shape, dtype=self.dtype) - 1

    def is_wrong(self, got: Any, *inputs: Any) -> Any:
        """Return whether C is wrong for these A, B and old C, as a number where the arrays are."""
        return differs(got, self._reference(*inputs), self._tolerance(0, *inputs)).any()

    def scalars(self) -> tuple[np.generic, ...]:
        """Return M, N and K as int32, alpha and beta in the dtype."""
        scalar = np.dtype(self.dtype).type
        return (*super().scalars(), scalar(self.alpha), scalar(self.beta))

    def _reference(self, *inputs: Any) -> Any:
        exact = _in_float64(*inputs, *map(float, self.scalars()[3:]))
        # All partial sums of int32 are whole numbers that float64 represents exactly.
        return exact.astype(np.int32) if self.dtype == "int32" else exact

    def _tolerance(self, unit_of_inputs: float, *inputs: Any) -> Any:
        """Bound the rounding error of each element of C.

        For floats: (gamma(K+2, u) + gamma(K+2, 2^-53)) (|alpha| |A| |B| + |beta| |C|), with
        gamma(n, u) = n u / (1 - n u) and u = 2^-24 for float32, 2^-53 for float64. A product of any order of
        summation, with or without fused multiply-add, is within gamma(K, u) |A| |B| of the exact one, element
        by element (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 3.5); alpha, beta and
        their sum round twice more. The second gamma is the error of `reference()`. The usual error grows with
        sqrt(K) and stays far below; a missing or doubled term is far above.

        `unit_of_inputs` is the unit roundoff of each element of A and B, or 2^-24 for the smallest, as half
        has no more digits there. Then u is 2^-23, since tensor cores cut sums off where others round (Fasi et
        al., Numerical behavior of NVIDIA tensor cores, 2021).
        """
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
        """Return 2 M N K: a multiplication and an addition per term. By convention alpha and beta add 0."""
        return 2 * self.M * self.N * self.K

    @property
    def bytes(self) -> int:
        """Return (M K + K N + M N) itemsize, plus M N itemsize where beta != 0 makes the kernel read C."""
        elements = self.M * self.K + self.K * self.N + self.M * self.N * (2 if self.beta else 1)
        return elements * np.dtype(self.dtype).itemsize

    def tolerance_on_cpu(self, macros: Mapping[str, str | int]) -> np.ndarray:
        """Return `tolerance`; for Strassen's algorithm with l = LEVELS levels, one bound for all elements.

        With k = K / 2^l it is 18^l (k^2 + 6 k) u max|A| max|B| (Higham, Accuracy and Stability of Numerical
        Algorithms, 2nd ed., theorem 23.3, for Winograd's form).
        """
        if "LEVELS" not in macros or self.dtype == "int32":
            return self.tolerance()
        levels = int(macros["LEVELS"])
        k = -(-self.K // 2**levels)
        largest = [float(abs(matrix).max()) for matrix in self.inputs()[:2]]
        bound = 18**levels * (k * k + 6 * k) * np.finfo(self.dtype).eps / 2 * largest[0] * largest[1]
        return np.full((self.M, self.N), bound)

    def reference_call(self, args: tuple[Any, ...]) -> Callable[[], object]:
        """Return a call of cublasSgemm or cublasDgemm on arrays that already exist.

        Unlike cupy.matmul, it ignores CUPY_TF32. Only the handle's math mode decides, and by default that
        multiplies float32 in full precision.
        """
        import cupy
        from cupy.cublas import gemm

        if self.dtype == "int32":
            raise ValueError("cuBLAS has no product of int32. Choose float32 or float64.")
        cublas = cupy.cuda.cublas
        cublas.setMathMode(cupy.cuda.get_cublas_handle(), cublas.CUBLAS_DEFAULT_MATH)
        a, b, c, *_, alpha, beta = args
        return lambda: gemm("N", "N", a, b, out=c, alpha=float(alpha), beta=float(beta))

    def relative_error(self, rung: str, args: tuple[Any, ...]) -> float | None:
        """Return the error of C = A B, for float32 products of EXAMINED rungs with alpha = 1 and beta = 0."""
        is_plain = (self.alpha, self.beta) == (1, 0)
        if rung not in EXAMINED or self.dtype != "float32" or not is_plain:
            return None
        a, b, c, *_ = args
        exact = a.astype("float64") @ b.astype("float64")
        return float(((c - exact) ** 2).mean() / (exact**2).mean()) ** 0.5


def _check_scalars(dtype: str, **scalars: float) -> None:
    largest = INT_MAX if dtype == "int32" else float(np.finfo(dtype).max)
    for name, value in scalars.items():
        if not abs(value) <= largest:
            raise ValueError(f"{name}={value} does not fit {dtype}. Choose one of at most {largest:.6g}.")
        if dtype == "int32" and value != int(value):
            raise ValueError(f"{name}={value} is not a whole number. Choose one, or a float dtype.")


def _in_float64(a: Any, b: Any, c: Any, alpha: float, beta: float) -> Any:
    """Compute C = alpha A B + beta C in float64; with beta == 0, C is not read."""
    product = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    return product + beta * c.astype(np.float64) if beta else product


def _gamma(n: int, unit: float) -> float:
    return n * unit / (1 - n * unit)
