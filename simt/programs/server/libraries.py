"""cuBLAS and cuRAND calls of a program, computed by NumPy in the memory that both share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simt.common.occupancy import Gpu
from simt.programs.server.memory import Memory
from simt.programs.server.wire import Reader

SUCCESS, INVALID_VALUE, EXECUTION_FAILED = 0, 7, 13
_TYPES: dict[str, np.dtype] = {"S": np.dtype(np.float32), "D": np.dtype(np.float64)}


class Libraries:
    """Serves the calls; `gpu` is the one whose time they would take."""

    def __init__(self, memory: Memory, gpu: Gpu) -> None:
        self._memory, self._gpu = memory, gpu
        self._generators: dict[int, np.random.Generator] = {}

    def call(self, reader: Reader) -> tuple[int, float, float]:
        """Serve a call; return its status, the seconds that it would take on the GPU, and its result."""
        name = reader.text()
        if name in _RANDOM:
            return self._random(name, reader)
        dtype, kind = _TYPES[name[0]], name[1:]
        try:
            if kind == "gemm":
                return SUCCESS, self._gemm(dtype, reader), 0.0
            if kind == "gemv":
                return SUCCESS, self._gemv(dtype, reader), 0.0
            if kind == "geam":
                return SUCCESS, self._geam(dtype, reader), 0.0
            return self._vectors(kind, dtype, reader)
        except ValueError:
            return INVALID_VALUE, 0.0, 0.0

    def _matrix(self, start: int, rows: int, columns: int, stride: int, dtype: np.dtype) -> np.ndarray:
        """Return a matrix whose columns lie one after the other, `stride` elements apart."""
        if rows < 0 or columns < 0 or stride < max(1, rows):
            raise ValueError(f"a matrix of {rows} x {columns} with columns {stride} elements apart")
        if not rows or not columns:
            return np.empty((rows, columns), dtype)
        count = (columns - 1) * stride + rows
        flat = self._memory.checked(start, count * dtype.itemsize).view(dtype)
        size = dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (size, stride * size))

    def _vector(self, start: int, count: int, step: int, dtype: np.dtype) -> np.ndarray:
        """Return a vector; a negative step begins at its end, as in BLAS."""
        size = max(0, count - 1) * abs(step) + min(count, 1)
        flat = self._memory.checked(start, size * dtype.itemsize).view(dtype)
        return flat[:: abs(step) or 1][::-1] if step < 0 else flat[:: step or 1]

    def _gemm(self, dtype: np.dtype, reader: Reader) -> float:
        ta, tb, m, n, k, alpha, lda, sa, ldb, sb, beta, ldc, sc, count = (reader.double() for _ in range(14))
        m, n, k = int(m), int(n), int(k)
        starts = [reader.u64() for _ in range(3)]
        for each in range(int(count)):
            a, b, c = (
                start + each * int(step) * dtype.itemsize
                for start, step in zip(starts, (sa, sb, sc), strict=True)
            )
            left = self._matrix(a, k if ta else m, m if ta else k, int(lda), dtype)
            right = self._matrix(b, n if tb else k, k if tb else n, int(ldb), dtype)
            into = self._matrix(c, m, n, int(ldc), dtype)
            product = dtype.type(alpha) * ((left.T if ta else left) @ (right.T if tb else right))
            into[...] = product if beta == 0 else product + dtype.type(beta) * into
        flops = 2.0 * m * n * k * count
        return self._seconds(flops, dtype.itemsize * count * (m * k + k * n + m * n), dtype)

    def _gemv(self, dtype: np.dtype, reader: Reader) -> float:
        trans, m, n, alpha, lda, incx, beta, incy = (reader.double() for _ in range(8))
        m, n = int(m), int(n)
        matrix = self._matrix(reader.u64(), m, n, int(lda), dtype)
        x = self._vector(reader.u64(), m if trans else n, int(incx), dtype)
        y = self._vector(reader.u64(), n if trans else m, int(incy), dtype)
        product = dtype.type(alpha) * ((matrix.T if trans else matrix) @ x)
        y[...] = product if beta == 0 else product + dtype.type(beta) * y
        return self._seconds(2.0 * m * n, dtype.itemsize * m * n, dtype)

    def _geam(self, dtype: np.dtype, reader: Reader) -> float:
        ta, tb, m, n, alpha, lda, beta, ldb, ldc = (reader.double() for _ in range(9))
        m, n = int(m), int(n)
        a, b, c = (reader.u64() for _ in range(3))
        left = self._matrix(a, n if ta else m, m if ta else n, int(lda), dtype) if alpha else None
        right = self._matrix(b, n if tb else m, m if tb else n, int(ldb), dtype) if beta else None
        total = np.zeros((m, n), dtype)
        if left is not None:
            total += dtype.type(alpha) * (left.T if ta else left)
        if right is not None:
            total += dtype.type(beta) * (right.T if tb else right)
        self._matrix(c, m, n, int(ldc), dtype)[...] = total
        return self._seconds(2.0 * m * n, 2 * dtype.itemsize * m * n, dtype)

    def _vectors(self, kind: str, dtype: np.dtype, reader: Reader) -> tuple[int, float, float]:
        n, alpha, incx, incy = (reader.double() for _ in range(4))
        x = self._vector(reader.u64(), int(n), int(incx), dtype)
        y = self._vector(reader.u64(), int(n), int(incy), dtype)
        result = _VECTORS[kind](dtype.type(alpha), x, y)
        return SUCCESS, self._seconds(2.0 * n, 2 * dtype.itemsize * n, dtype), float(result or 0)

    def _random(self, name: str, reader: Reader) -> tuple[int, float, float]:
        number, count, first, second = (reader.double() for _ in range(4))
        start = reader.u64()
        if name == "seed":
            self._generators[int(number)] = np.random.Generator(
                np.random.Philox(int(first) << 32 | int(second))
            )
            return SUCCESS, 0.0, 0.0
        generator = self._generators.setdefault(int(number), np.random.Generator(np.random.Philox(0)))
        if name == "offset":
            generator.random(int(count))
            return SUCCESS, 0.0, 0.0
        dtype, draw = _RANDOM[name]
        try:
            into = self._memory.checked(start, int(count) * dtype.itemsize).view(dtype)
        except ValueError:
            return EXECUTION_FAILED, 0.0, 0.0
        into[...] = draw(generator, int(count), first, second)
        return SUCCESS, self._seconds(10.0 * count, dtype.itemsize * count, dtype), 0.0

    def _seconds(self, flops: float, bytes_: float, dtype: np.dtype) -> float:
        """Return the lowest time that the GPU's peak rates allow: libraries come close to it."""
        gpu = self._gpu
        per_clock = gpu.fp32_cores_per_sm if dtype.itemsize < 8 else gpu.fp64_per_clock or 2
        peak = 2.0 * gpu.multiprocessors * per_clock * (gpu.boost_mhz or 1500) * 1e6
        rate = (gpu.dram_gb_s or 0.9 * (gpu.bandwidth_gb_s or 500)) * 1e9
        return max(flops / peak, bytes_ / rate) + 3e-6


def _into(y: np.ndarray, value: np.ndarray) -> None:
    y[...] = value


_VECTORS: dict[str, Callable[..., float | None]] = {
    "axpy": lambda alpha, x, y: _into(y, alpha * x + y),
    "scal": lambda alpha, x, y: _into(x, alpha * x),
    "copy": lambda alpha, x, y: _into(y, x),
    "dot": lambda alpha, x, y: float(np.dot(x, y)),
    "nrm2": lambda alpha, x, y: float(np.linalg.norm(x)),
    "asum": lambda alpha, x, y: float(np.abs(x).sum()),
}
_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
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
}
