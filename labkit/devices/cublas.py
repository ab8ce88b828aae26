"""Matrix products of few bits by NVIDIA's library cuBLAS, for comparison: C = alpha A B^T + beta C.

A (M,K), B (N,K) and C (M,N) are row-major arrays of CuPy, of the bits that `core.bits.stored` keeps.
Sums are float32, those of partial sums too. cuBLAS is column-major: it is asked for C^T = B A^T.

CuPy has cublasGemmEx. fp8 is cublasLt's alone, which is called here through ctypes. The numbers are those of
CUDA's headers library_types.h, cublas_api.h and cublasLt.h.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import cupy
import numpy as np
from cupy.cuda import cublas

from simt.common.errors import LaunchError

R_32F, R_16F, R_16BF, R_8F_E4M3 = 0, 2, 14, 28  # cudaDataType
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77  # cublasComputeType_t
IN_COMPUTE_TYPE = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
TRANSA, TRANSB = 3, 4  # cublasLtMatmulDescAttributes_t
REDUCTION_SCHEMES, WORKSPACE_BYTES = 3, 1  # cublasLtMatmulPreferenceAttributes_t
COMPUTE_TYPE = 2  # cublasLtReductionScheme_t: partial sums stay float32
WORKSPACE = 32 * 2**20  # bytes


class _Types(NamedTuple):
    """The cudaDataTypes of A and B, and of C; the type of the computation."""

    operand: int
    result: int
    compute: int = COMPUTE_32F


_TYPES = {
    "float16": _Types(R_16F, R_16F),
    "bfloat16": _Types(R_16BF, R_16BF),
    "tf32": _Types(R_32F, R_32F, COMPUTE_32F_FAST_TF32),
    "fp8": _Types(R_8F_E4M3, R_16F),
}


def product_call(
    dtype: str, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, alpha: float, beta: float
) -> Callable[[], object]:
    """Return a call of cuBLAS; `dtype` is float16, bfloat16, tf32 or fp8.

    fp8 raises LaunchError for sizes that cublasLt does not take, such as those that 16 does not divide.
    """
    scalars = np.array([alpha, beta], np.float32)  # cuBLAS reads them in the host's memory
    kind = _TYPES[dtype]
    return (_lt_call if dtype == "fp8" else _gemm_call)(kind, a, b, c, scalars)


def _gemm_call(
    kind: _Types, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, scalars: np.ndarray
) -> Callable[[], object]:
    handle, (m, n), k = cupy.cuda.get_cublas_handle(), c.shape, a.shape[1]
    cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH | IN_COMPUTE_TYPE)

    def call() -> None:
        alpha = scalars.ctypes.data
        cublas.gemmEx(
            *(handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, n, m, k, alpha),
            *(b.data.ptr, kind.operand, k, a.data.ptr, kind.operand, k, alpha + scalars.itemsize),
            *(c.data.ptr, kind.result, n, kind.compute, cublas.CUBLAS_GEMM_DEFAULT),
        )

    return call


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm, and what it needs."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class _Plan(NamedTuple):
    """The descriptions of a product and of its matrices, and the algorithm that cublasLt chooses."""

    product: ctypes.c_void_p
    left: ctypes.c_void_p
    right: ctypes.c_void_p
    result: ctypes.c_void_p
    best: _Heuristic


def _lt_call(
    kind: _Types, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, scalars: np.ndarray
) -> Callable[[], object]:
    (m, n), k = c.shape, a.shape[1]
    plan, workspace = _plan(kind, m, n, k), cupy.empty(WORKSPACE, cupy.uint8)

    def call() -> None:
        alpha = scalars.ctypes.data
        addresses = (alpha, b.data.ptr, a.data.ptr, alpha + scalars.itemsize, c.data.ptr, workspace.data.ptr)
        one, left, right, two, result, space = map(ctypes.c_void_p, addresses)
        stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
        _lt(
            *("Matmul", _lt_handle(), plan.product, one, left, plan.left, right, plan.right),
            *(two, result, plan.result, result, plan.result, ctypes.byref(plan.best)),
            *(space, ctypes.c_size_t(WORKSPACE), stream),
        )

    return call


def _plan(kind: _Types, m: int, n: int, k: int) -> _Plan:
    """Return the plan of C^T (n,m) = B A^T. Raises LaunchError where cublasLt has no such product."""
    product = _created("MatmulDesc", ctypes.c_int(kind.compute), ctypes.c_int(R_32F))
    _set("MatmulDesc", product, TRANSA, ctypes.c_int32(cublas.CUBLAS_OP_T))
    _set("MatmulDesc", product, TRANSB, ctypes.c_int32(cublas.CUBLAS_OP_N))
    left, right, result = _layout(kind.operand, k, n), _layout(kind.operand, k, m), _layout(kind.result, n, m)
    preference = _created("MatmulPreference")
    _set("MatmulPreference", preference, WORKSPACE_BYTES, ctypes.c_uint64(WORKSPACE))
    _set("MatmulPreference", preference, REDUCTION_SCHEMES, ctypes.c_uint32(COMPUTE_TYPE))
    best, found = _Heuristic(), ctypes.c_int()
    _lt(
        *("MatmulAlgoGetHeuristic", _lt_handle(), product, left, right, result, result, preference),
        *(ctypes.c_int(1), ctypes.byref(best), ctypes.byref(found)),
    )
    if not found.value:
        raise LaunchError(f"cublasLt has no product of {m} x {n} x {k} in fp8. Choose multiples of 16.")
    return _Plan(product, left, right, result, best)


@cache
def _library() -> ctypes.CDLL:
    """Return cublasLt, which CuPy's own cuBLAS has already loaded."""
    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    name = f"cublasLt64_{major}.dll" if sys.platform == "win32" else f"libcublasLt.so.{major}"
    return ctypes.CDLL(name)


def _lt(function: str, *args: object) -> None:
    """Call a function of cublasLt. Raises LaunchError with its status."""
    status = getattr(_library(), f"cublasLt{function}")(*args)
    if status:
        raise LaunchError(f"cublasLt{function} returned status {status} (cublasStatus_t).")


@cache
def _lt_handle() -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _lt("Create", ctypes.byref(handle))
    return handle


def _created(what: str, *args: object) -> ctypes.c_void_p:
    """Return a new description; it lives as long as the process, in some hundred bytes."""
    made = ctypes.c_void_p()
    _lt(f"{what}Create", ctypes.byref(made), *args)
    return made


def _layout(kind: int, rows: int, columns: int) -> ctypes.c_void_p:
    """Return the description of a column-major matrix."""
    sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
    return _created("MatrixLayout", ctypes.c_int(kind), *sizes)


def _set(what: str, described: ctypes.c_void_p, attribute: int, value: "ctypes._SimpleCData[int]") -> None:
    size = ctypes.c_size_t(ctypes.sizeof(value))
    _lt(f"{what}SetAttribute", described, ctypes.c_int(attribute), ctypes.byref(value), size)
