"""What this machine has for a shape of a report: counts of the simulator and, on a GPU, measured times.

`rows` gives both in the columns of `records.load`, ready for `plots`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import pandas as pd

from labkit import kernels
from labkit.devices.select import device
from labkit.devices.timing import Timing, time_kernel
from labkit.kernels.matmul.family import Matmul
from labkit.records import frame_of
from simt import AnyKernel
from simt.kernel import PATIENCE_SECONDS

KERNELS = {"naive": "matmul/1_naive", "tiled": "matmul/2_tiled"}
LOADS, SECTORS = "global loads", "sectors per multiply-add"
Size = tuple[int, int, int]  # m, n, k
Shape = tuple[Size, int]  # and the side of a block

_METRIC = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
_SAMPLE = 16  # blocks counted at most
_BUDGET = 2**21  # multiply-adds counted at most, some 30 ms, unless two blocks have more
_SLOW = 2e9  # m n k / side^2: a launch above it (0.1 s on an H200) is timed only when asked for


@dataclass(frozen=True)
class Count:
    """Sectors of global loads per multiply-add and per request; `label` says how they were counted."""

    per_multiply_add: float
    per_request: float
    label: str


@lru_cache(maxsize=1024)
def count(kernel: str, size: Size, side: int) -> Count:
    """Count the loads of a launch of `kernel` ("naive" or "tiled") with blocks of side × side.

    It counts in float32, as the reports' int32 has the same addresses. These do not depend on the values, so
    the matrices are zeros, which the system gives for nothing. Raises LaunchError for a block that no GPU
    takes.
    """
    problem, sample = Matmul(*size), max(2, _BUDGET // (side * side * size[2]))
    grid, block = problem.launch(side)
    args = (*problem.zeros(), *problem.scalars())
    profile = _load(kernel, side, problem).profile(
        grid, block, args, blocks=min(sample, _SAMPLE), timeout=PATIENCE_SECONDS
    )
    sectors, requests = (profile.metrics[_METRIC.format(what)] for what in ("sectors", "requests"))
    return Count(sectors / (problem.flops / 2), sectors / requests, profile.label)


@lru_cache(maxsize=1024)
def measure(kernel: str, size: Size, side: int, dtype: str) -> Timing:
    """Time the same launch on this machine's GPU, briefly; a slow one has a single sample."""
    problem = Matmul(*size, dtype=dtype)
    grid, block = problem.launch(side)
    loaded, args = _load(kernel, side, problem), _on_gpu(problem)
    return time_kernel(lambda: loaded(grid, block, args), seconds=0.02)


def rows(
    names: Iterable[str], sizes: Iterable[Size], sides: Iterable[int], chosen: Shape, dtype: str
) -> pd.DataFrame:
    """Count each kernel, size and side; on a GPU also time them, a slow launch only if it is `chosen`."""
    found = [row for each in product(names, sizes, sides) for row in _rows(*each, each[1:] == chosen, dtype)]
    return frame_of(found)


def _rows(kernel: str, size: Size, side: int, chosen: bool, dtype: str) -> Iterator[dict[str, Any]]:
    m, n, k = size
    shape = {"problem": "matmul", "kernel": kernel, "dtype": dtype, "m": m, "n": n, "k": k}
    shape |= {"block_x": side, "block_y": side, "tile": side if kernel == "tiled" else None, "note": ""}
    if device().kind == "gpu" and (chosen or _is_quick(size, side)):
        timing = measure(kernel, size, side, dtype)
        yield shape | {"quantity": "time", "unit": "ms", "value": timing.median, "source": timing.source}
    counted, source = count(kernel, size, side), "counted by the simulator in some blocks, scaled"
    yield shape | {"quantity": LOADS, "unit": SECTORS, "value": counted.per_multiply_add, "source": source}


def _is_quick(size: Size, side: int) -> bool:
    return prod(size) / side**2 <= _SLOW


def _load(kernel: str, side: int, problem: Matmul) -> AnyKernel:
    tile = {"TILE": side} if kernel == "tiled" else {}  # one compilation of naive serves all sides
    return kernels.load(KERNELS[kernel], DTYPE=problem.ctype, **tile)


@lru_cache(maxsize=1)
def _on_gpu(problem: Matmul) -> tuple[Any, ...]:
    from labkit.devices.select import xp

    return problem.args(xp)
