"""cuBLAS and cuRAND calls of a program, computed by NumPy in the memory that both share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from simt.common.occupancy import Gpu
from simt.programs.server.memory import POINTER_BYTES, Memory
from simt.programs.server.reporting import tell
from simt.programs.server.wire import Reader

SUCCESS, INVALID_VALUE, EXECUTION_FAILED = 0, 7, 13
_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_TYPES: dict[str, np.dtype] = {"S": _FLOAT, "D": _DOUBLE}
_BY_NUMBER: dict[int, np.dtype] = {  # cudaDataType
    0: _FLOAT,
    1: _DOUBLE,
    2: np.dtype(np.float16),
    3: np.dtype(np.int8),
    10: np.dtype(np.int32),
    14: np.dtype(ml_dtypes.bfloat16),
}
_UPPER, _RIGHT = 1, 1  # cublasFillMode_t, cublasSideMode_t


class Libraries:
    """Serves the calls; `gpu` is the one whose time they would take."""

    def __init__(self, memory: Memory, gpu: Gpu) -> None:
        self._memory, self._gpu = memory, gpu
        self._generators: dict[int, np.random.Generator] = {}

    def call(self, reader: Reader) -> tuple[int, float, float]:
        """Serve a call; return its status, the seconds that it would take on the GPU, and its result."""
        name = reader.text()
        numbers = [reader.double() for _ in range(reader.u32())]
        pointers = [reader.u64() for _ in range(reader.u32())]
        try:
            if name in _RANDOM:
                return SUCCESS, self._random(name, numbers, pointers[0]), 0.0
            if name == "gemm":
                return SUCCESS, self._gemm(numbers, pointers), 0.0
            dtype, kind = _TYPES[name[0]], name[1:]
            if kind in _VECTORS:
                return self._vectors(kind, dtype, numbers, pointers)
            seconds = getattr(self, f"_{kind}")(dtype, *numbers, *pointers)
        except ValueError as error:
            tell(f"labkit: cu{'RAND' if name in _RANDOM else 'BLAS'}, {name}: {error}")
            return EXECUTION_FAILED if name in _RANDOM else INVALID_VALUE, 0.0, 0.0
        return SUCCESS, seconds, 0.0

    def _matrix(self, start: int, rows: float, columns: float, stride: float, dtype: np.dtype) -> np.ndarray:
        """Return a matrix whose columns lie one after the other, `stride` elements apart."""
        rows, columns, stride = int(rows), int(columns), int(stride)
        if rows < 0 or columns < 0 or stride < max(1, rows):
            raise ValueError(f"a matrix of {rows} x {columns} with columns {stride} elements apart")
        if not rows or not columns:
            return np.empty((rows, columns), dtype)
        count = (columns - 1) * stride + rows
        flat = self._memory.checked(start, count * dtype.itemsize).view(dtype)
        size = dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (size, stride * size))

    def _vector(self, start: int, count: float, step: float, dtype: np.dtype) -> np.ndarray:
        """Return a vector; a negative step begins at its end, as in BLAS."""
        count, step = int(count), int(step)
        size = max(0, count - 1) * abs(step) + min(count, 1)
        flat = self._memory.checked(start, size * dtype.itemsize).view(dtype)
        return flat[:: abs(step) or 1][::-1] if step < 0 else flat[:: step or 1]

    def _starts(self, array: int, stride: float, count: int, size: int, is_batched: bool) -> list[int]:
        """Return where each of several matrices begins: at the pointers in an array, or a stride apart."""
        if is_batched:
            return [int(p) for p in self._memory.checked(array, count * POINTER_BYTES).view(np.uint64)]
        return [array + each * int(stride) * size for each in range(count)]

    def _gemm(self, numbers: Sequence[float], pointers: Sequence[int]) -> float:
        ta, tb, m, n, k, alpha, lda, sa, ldb, sb, beta, ldc, sc, count, *types, is_batched = numbers
        dtypes = [_BY_NUMBER[int(each)] for each in types]
        starts = [
            self._starts(pointer, stride, int(count), dtype.itemsize, bool(is_batched))
            for pointer, stride, dtype in zip(pointers, (sa, sb, sc), dtypes, strict=True)
        ]
        for a, b, c in zip(*starts, strict=True):
            left = self._matrix(a, k if ta else m, m if ta else k, lda, dtypes[0])
            right = self._matrix(b, n if tb else k, k if tb else n, ldb, dtypes[1])
            into = self._matrix(c, m, n, ldc, dtypes[2])
            into[...] = _product(left.T if ta else left, right.T if tb else right, alpha, beta, into)
        flops = 2.0 * m * n * k * count
        return self._seconds(flops, dtypes[0].itemsize * count * (m * k + k * n + m * n), dtypes[0])

    def _gemv(
        self, dtype: np.dtype, trans: float, m: float, n: float, alpha: float, lda: float, incx: float,
        beta: float, incy: float, a: int, x: int, y: int,
    ) -> float:  # fmt: skip
        matrix = self._matrix(a, m, n, lda, dtype)
        vector = self._vector(x, m if trans else n, incx, dtype)
        into = self._vector(y, n if trans else m, incy, dtype)
        into[...] = _product(matrix.T if trans else matrix, vector, alpha, beta, into)
        return self._seconds(2.0 * m * n, dtype.itemsize * m * n, dtype)

    def _symv(
        self, dtype: np.dtype, uplo: float, n: float, alpha: float, lda: float, incx: float, beta: float,
        incy: float, a: int, x: int, y: int,
    ) -> float:  # fmt: skip
        matrix = _symmetric(self._matrix(a, n, n, lda, dtype), uplo)
        into = self._vector(y, n, incy, dtype)
        into[...] = _product(matrix, self._vector(x, n, incx, dtype), alpha, beta, into)
        return self._seconds(2.0 * n * n, dtype.itemsize * n * n, dtype)

    def _ger(
        self, dtype: np.dtype, m: float, n: float, alpha: float, incx: float, incy: float, lda: float,
        x: int, y: int, a: int,
    ) -> float:  # fmt: skip
        column, row = self._vector(x, m, incx, dtype), self._vector(y, n, incy, dtype)
        self._matrix(a, m, n, lda, dtype)[...] += dtype.type(alpha) * np.outer(column, row)
        return self._seconds(2.0 * m * n, 2 * dtype.itemsize * m * n, dtype)

    def _trmv(
        self, dtype: np.dtype, uplo: float, trans: float, diag: float, n: float, lda: float, incx: float,
        a: int, x: int,
    ) -> float:  # fmt: skip
        matrix = _triangle(self._matrix(a, n, n, lda, dtype), uplo, diag)
        vector = self._vector(x, n, incx, dtype)
        vector[...] = (matrix.T if trans else matrix) @ vector
        return self._seconds(1.0 * n * n, dtype.itemsize * n * n / 2, dtype)

    def _trsv(
        self, dtype: np.dtype, uplo: float, trans: float, diag: float, n: float, lda: float, incx: float,
        a: int, x: int,
    ) -> float:  # fmt: skip
        matrix = _triangle(self._matrix(a, n, n, lda, dtype), uplo, diag)
        vector = self._vector(x, n, incx, dtype)
        vector[...] = _solved(matrix.T if trans else matrix, vector[:, None])[:, 0]
        return self._seconds(1.0 * n * n, dtype.itemsize * n * n / 2, dtype)

    def _trsm(
        self, dtype: np.dtype, side: float, uplo: float, trans: float, diag: float, m: float, n: float,
        alpha: float, lda: float, ldb: float, a: int, b: int,
    ) -> float:  # fmt: skip
        order = n if side == _RIGHT else m
        matrix = _triangle(self._matrix(a, order, order, lda, dtype), uplo, diag)
        matrix = matrix.T if trans else matrix
        into = self._matrix(b, m, n, ldb, dtype)
        right = dtype.type(alpha) * into
        into[...] = _solved(matrix.T, right.T).T if side == _RIGHT else _solved(matrix, right)
        return self._seconds(1.0 * m * n * order, dtype.itemsize * (order * order / 2 + m * n), dtype)

    def _symm(
        self, dtype: np.dtype, side: float, uplo: float, m: float, n: float, alpha: float, lda: float,
        ldb: float, beta: float, ldc: float, a: int, b: int, c: int,
    ) -> float:  # fmt: skip
        order = n if side == _RIGHT else m
        matrix = _symmetric(self._matrix(a, order, order, lda, dtype), uplo)
        other, into = self._matrix(b, m, n, ldb, dtype), self._matrix(c, m, n, ldc, dtype)
        factors = (other, matrix) if side == _RIGHT else (matrix, other)
        into[...] = _product(*factors, alpha, beta, into)
        return self._seconds(2.0 * m * n * order, dtype.itemsize * (order * order + 2 * m * n), dtype)

    def _syrk(
        self, dtype: np.dtype, uplo: float, trans: float, n: float, k: float, alpha: float, lda: float,
        beta: float, ldc: float, a: int, c: int,
    ) -> float:  # fmt: skip
        matrix = self._matrix(a, k if trans else n, n if trans else k, lda, dtype)
        matrix = matrix.T if trans else matrix
        into = self._matrix(c, n, n, ldc, dtype)
        places = _in_triangle(int(n), uplo)
        into[places] = _product(matrix, matrix.T, alpha, beta, into)[places]
        return self._seconds(1.0 * n * n * k, dtype.itemsize * (n * k + n * n), dtype)

    def _dgmm(
        self, dtype: np.dtype, side: float, m: float, n: float, lda: float, incx: float, ldc: float,
        a: int, x: int, c: int,
    ) -> float:  # fmt: skip
        matrix = self._matrix(a, m, n, lda, dtype)
        vector = self._vector(x, n if side == _RIGHT else m, incx, dtype)
        self._matrix(c, m, n, ldc, dtype)[...] = matrix * (vector if side == _RIGHT else vector[:, None])
        return self._seconds(1.0 * m * n, 2 * dtype.itemsize * m * n, dtype)

    def _geam(
        self, dtype: np.dtype, ta: float, tb: float, m: float, n: float, alpha: float, lda: float,
        beta: float, ldb: float, ldc: float, a: int, b: int, c: int,
    ) -> float:  # fmt: skip
        total = np.zeros((int(m), int(n)), dtype)
        for factor, start, trans, stride in ((alpha, a, ta, lda), (beta, b, tb, ldb)):
            if factor:
                matrix = self._matrix(start, n if trans else m, m if trans else n, stride, dtype)
                total += dtype.type(factor) * (matrix.T if trans else matrix)
        self._matrix(c, m, n, ldc, dtype)[...] = total
        return self._seconds(2.0 * m * n, 2 * dtype.itemsize * m * n, dtype)

    def _rot(
        self, dtype: np.dtype, n: float, cosine: float, sine: float, incx: float, incy: float, x: int, y: int
    ) -> float:
        first, second = self._vector(x, n, incx, dtype), self._vector(y, n, incy, dtype)
        c, s = dtype.type(cosine), dtype.type(sine)
        first[...], second[...] = c * first + s * second, c * second - s * first
        return self._seconds(6.0 * n, 4 * dtype.itemsize * n, dtype)

    def _vectors(
        self, kind: str, dtype: np.dtype, numbers: Sequence[float], pointers: Sequence[int]
    ) -> tuple[int, float, float]:
        n, alpha, incx, incy = numbers
        x = self._vector(pointers[0], n, incx, dtype)
        y = self._vector(pointers[1], n, incy, dtype)
        result = _VECTORS[kind](dtype.type(alpha), x, y)
        return SUCCESS, self._seconds(2.0 * n, 2 * dtype.itemsize * n, dtype), float(result or 0)

    def _random(self, name: str, numbers: Sequence[float], start: int) -> float:
        number, count, first, second = numbers
        if name == "seed":
            self._generators[int(number)] = np.random.Generator(
                np.random.Philox(int(first) << 32 | int(second))
            )
            return 0.0
        generator = self._generators.setdefault(int(number), np.random.Generator(np.random.Philox(0)))
        if name == "offset":
            generator.random(int(count))
            return 0.0
        dtype, draw = _RANDOM[name]
        into = self._memory.checked(start, int(count) * dtype.itemsize).view(dtype)
        into[...] = draw(generator, int(count), first, second)
        return self._seconds(10.0 * count, dtype.itemsize * count, dtype)

    def _seconds(self, flops: float, bytes_: float, dtype: np.dtype) -> float:
        """Return the lowest time that the GPU's peak rates allow: libraries come close to it."""
        gpu = self._gpu
        per_clock = gpu.fp32_flop_per_clock if dtype.itemsize < 8 else 2 * (gpu.fp64_per_clock or 2)
        if dtype.itemsize <= 2:
            per_clock = gpu.tensor_fp16_flop_per_clock or per_clock
        peak = gpu.per_second(per_clock, gpu.boost_mhz or 1500)
        rate = (gpu.dram_gb_s or 0.9 * (gpu.bandwidth_gb_s or 500)) * 1e9
        return max(flops / peak, bytes_ / rate) + 3e-6


def _product(
    left: np.ndarray, right: np.ndarray, alpha: float, beta: float, before: np.ndarray
) -> np.ndarray:
    """Return alpha left right + beta before. Sums are of float32 at least, those of integers of int32.

    Where a factor is 0, what stands with it is not read: it may hold NaN.
    """
    sums = np.dtype(np.int32) if before.dtype == np.int32 else np.promote_types(before.dtype, _FLOAT)
    product = np.zeros(before.shape, sums)
    if alpha:
        product = sums.type(alpha) * (left.astype(sums, copy=False) @ right.astype(sums, copy=False))
    if beta:
        product = product + sums.type(beta) * before.astype(sums, copy=False)
    return product.astype(before.dtype, copy=False)


def _in_triangle(order: int, uplo: float) -> tuple[np.ndarray, ...]:
    """Return the places of a triangle, with the diagonal."""
    return np.triu_indices(order) if uplo == _UPPER else np.tril_indices(order)


def _symmetric(matrix: np.ndarray, uplo: float) -> np.ndarray:
    """Return the symmetric matrix of which one triangle is stored."""
    half = np.triu(matrix, 1) if uplo == _UPPER else np.tril(matrix, -1)
    return half + half.T + np.diag(np.diag(matrix))


def _triangle(matrix: np.ndarray, uplo: float, is_unit: float) -> np.ndarray:
    """Return the triangular matrix that is stored; its diagonal may be ones that are not."""
    half = np.triu(matrix) if uplo == _UPPER else np.tril(matrix)
    if is_unit:
        np.fill_diagonal(half, 1)
    return half


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solutions of a triangular system, a column for each of the right sides."""
    order = len(matrix)
    is_upper = not np.tril(matrix, -1).any()
    x = right.copy()
    for row in reversed(range(order)) if is_upper else range(order):
        known = slice(row + 1, None) if is_upper else slice(0, row)
        with np.errstate(divide="ignore", invalid="ignore"):
            x[row] = (x[row] - matrix[row, known] @ x[known]) / matrix[row, row]
    return x


def _into(y: np.ndarray, value: np.ndarray) -> None:
    y[...] = value


def _exchange(x: np.ndarray, y: np.ndarray) -> None:
    x[...], y[...] = y.copy(), x.copy()


_VECTORS: dict[str, Callable[..., float | None]] = {
    "axpy": lambda alpha, x, y: _into(y, alpha * x + y),
    "scal": lambda alpha, x, y: _into(x, alpha * x),
    "copy": lambda alpha, x, y: _into(y, x),
    "swap": lambda alpha, x, y: _exchange(x, y),
    "dot": lambda alpha, x, y: float(np.dot(x, y)),
    "nrm2": lambda alpha, x, y: float(np.linalg.norm(x)),
    "asum": lambda alpha, x, y: float(np.abs(x).sum()),
    # Numbered from 1; 0 for no elements.
    "amax": lambda alpha, x, y: float(np.argmax(np.abs(x)) + 1) if len(x) else 0.0,
    "amin": lambda alpha, x, y: float(np.argmin(np.abs(x)) + 1) if len(x) else 0.0,
}
# cuRAND's uniform numbers are in (0, 1], NumPy's in [0, 1).
_RANDOM: dict[str, tuple[np.dtype, Callable[..., np.ndarray]]] = {
    "seed": (_FLOAT, np.empty),
    "offset": (_FLOAT, np.empty),
    "bits": (np.dtype(np.uint32), lambda g, n, a, b: g.integers(0, 1 << 32, n, np.uint32)),
    "uniform": (_FLOAT, lambda g, n, a, b: 1 - g.random(n, np.float32)),
    "uniform double": (_DOUBLE, lambda g, n, a, b: 1 - g.random(n)),
    "normal": (_FLOAT, lambda g, n, a, b: a + b * g.standard_normal(n, np.float32)),
    "normal double": (_DOUBLE, lambda g, n, a, b: a + b * g.standard_normal(n)),
    "lognormal": (_FLOAT, lambda g, n, a, b: np.exp(a + b * g.standard_normal(n, np.float32))),
    "lognormal double": (_DOUBLE, lambda g, n, a, b: np.exp(a + b * g.standard_normal(n))),
    "poisson": (np.dtype(np.uint32), lambda g, n, a, b: g.poisson(a, n).astype(np.uint32)),
}
