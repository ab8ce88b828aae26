"""`labkit.matmul`: the product of two float32 matrices of any shape, by the kernel that rule.py chooses."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit import kernels
from labkit.devices.select import device
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.matmul.rule import DEFAULT_SMS, choose
from simt import AnyKernel
from simt.common.limits import Dim3
from simt.kernel import PATIENCE_SECONDS

CLUSTERS_FROM = 9.0  # compute capability of the GPUs that have clusters of blocks
Matrix = NDArray[np.float32]  # of CuPy on a GPU


def matmul(A: Matrix, B: Matrix, out: Matrix | None = None, alpha: float = 1, beta: float = 0) -> Matrix:
    """Return alpha A B + beta out, in full float32, for matrices A (M,K) and B (K,N) of any sizes.

    A, B and out (M,N) are contiguous float32 arrays: CuPy's on a GPU, NumPy's in the simulator. The result is
    written to `out`, if there is one; with beta = 0 it is not read. On a GPU the call returns before the
    result is there, as all of CuPy does. Every call with the same shapes gives the same bits. Products of
    several CUDA streams must not run at the same time: their blocks would share one workspace.

    Raises TypeError for another kind of array, and ValueError for shapes that do not fit, other dtypes,
    arrays that are not contiguous or overlap, or a beta without `out`.
    """
    here = device()
    array = here.xp.ndarray
    _check_array("A", A, array)
    _check_array("B", B, array)
    (m, k), (rows, n) = A.shape, B.shape
    if k != rows:
        raise ValueError(
            f"A {A.shape} has {k} columns and B {B.shape} has {rows} rows; these numbers must be equal. "
            "Choose other matrices, or pass a contiguous copy of a transposed one."
        )
    if out is None:
        if beta:
            raise ValueError(f"beta={beta} scales the old values of out, and there is no out. Pass it.")
        out = here.xp.empty((m, n), np.float32)
    else:
        _check_array("out", out, array)
        _check_out(out, (m, n), A, B, here.xp.may_share_memory)
    _plan(m, n, k, alpha, beta, here.kind, here.index).start(A, B, out)
    return out


@dataclass
class Plan:
    """A launch for matrices of given shapes. What can be checked once is, in the first launch."""

    kernel: AnyKernel
    grid: Dim3
    block: Dim3
    numbers: tuple[np.generic, ...]  # the kernel's arguments after A, B and C
    _launch: Callable[..., None] | None = None

    def start(self, *matrices: Matrix) -> None:
        """Launch the kernel."""
        if self._launch is None:
            self._launch = self.kernel.launcher(
                self.grid, self.block, (*matrices, *self.numbers), timeout=PATIENCE_SECONDS
            )
        self._launch(*matrices)


def plan(m: int, n: int, k: int) -> Plan:
    """Choose and compile the kernel for A B on this device. Raises ValueError for sizes out of range."""
    here = device()
    return _plan(m, n, k, 1, 0, here.kind, here.index)


@lru_cache(maxsize=1024)
def _plan(m: int, n: int, k: int, alpha: float, beta: float, _kind: str, _index: int) -> Plan:
    """Choose and compile the kernel for a product on the device, which has this kind and index."""
    here = device()
    numbers = Matmul(m, n, k, alpha=alpha, beta=beta).scalars()  # refuses sizes and factors out of range
    has_clusters = float(here.compute_capability) >= CLUSTERS_FROM
    chosen = choose(m, n, k, here.multiprocessors or DEFAULT_SMS, has_clusters)
    return Plan(kernels.load(chosen.kernel, **dict(chosen.macros)), chosen.grid, chosen.block, numbers)


def _check_out(
    out: Matrix, shape: tuple[int, int], A: Matrix, B: Matrix, may_share: Callable[..., Any]
) -> None:
    if out.shape != shape:
        raise ValueError(
            f"out has the shape {out.shape}; the product has {shape}. Pass an out of that shape."
        )
    if may_share(out, A) or may_share(out, B):
        raise ValueError("out overlaps A or B, which are read while it is written. Pass another array.")


def _check_array(name: str, array: Matrix, kind: type) -> None:
    if not isinstance(array, kind):
        raise TypeError(
            f"{name} is a {type(array).__module__}.{type(array).__name__}; this device takes "
            f"{kind.__module__.partition('.')[0]} arrays. Pass labkit.xp.asarray({name})."
        )
    if array.ndim != 2:
        raise ValueError(f"{name} has the shape {array.shape}; a matrix has two dimensions. Reshape it.")
    if array.dtype != np.float32:
        raise ValueError(f'{name} has the dtype {array.dtype}; pass {name}.astype("float32").')
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous. Pass labkit.xp.ascontiguousarray({name}).")
