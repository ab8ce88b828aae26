"""The ladder of matrix products on the CPU: each rung, and NumPy's library, timed at any size."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from labkit import kernels
from labkit.cpu.blas import Blas
from labkit.cpu.measure import measure
from labkit.kernels.in_c import CpuKernel
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import C_TYPES
from labkit.records import COLUMNS, frame_of

# The rungs' names in the reports' tables and ours, simplest first. `BLAS` is not our kernel.
BLAS = "cpu_blas"
RUNGS = {name: f"matmul/{file}" for name, file in Matmul.cpu_rungs.items()}
# Rungs for which every band of rows of C costs the same, and the height of a band; None: BLOCK.
BANDS = {"cpu_naive": 1, "cpu_loop_order": 1, "cpu_avx": 1, "cpu_avx_blocked": None}
ENOUGH = 45e6  # multiply-adds that are enough to time them


def rung(name: str, threads: int = 1, dtype: str = "float32", **parameters: int) -> CpuKernel | Blas:
    """Return a rung of RUNGS, or BLAS, in `threads` threads where it can use them.

    `parameters` are macros, such as BLOCK. Raises ValueError for another name.
    """
    if name == BLAS:
        return Blas(threads, dtype)
    if name not in RUNGS:
        raise ValueError(f"there is no rung {name!r}. Choose one of {', '.join([*RUNGS, BLAS])}.")
    return kernels.load(RUNGS[name], THREADS=threads, DTYPE=C_TYPES[dtype], **parameters)


def time_rung(
    name: str, n: int, threads: int = 1, *, seconds: float = 0.1, **parameters: int
) -> dict[str, Any]:
    """Time an n x n x n product on a rung, as a row in the columns of `records.load`.

    For the rungs in BANDS a few rows of C are enough: their time is scaled, and `note` says so.
    """
    kernel = rung(name, threads, "float32", **parameters)
    rows = rows_timed(name, n, parameters.get("BLOCK", 128))
    timing = measure(kernel, Matmul(rows, n, n), seconds=seconds)
    return {
        **dict.fromkeys(COLUMNS, ""),
        **dict.fromkeys(("m", "n", "k"), n),
        **dict.fromkeys(("rows", "cols", "block_x", "block_y")),
        "tile": parameters.get("BLOCK"),
        "problem": "matmul",
        "kernel": name,
        "dtype": "float32",
        "quantity": "time",
        "unit": "ms",
        "value": timing.median * n / rows,
        "note": f"{rows} of {n} rows of C, scaled" if rows < n else "",
        "source": timing.source,
    }


def rows_timed(name: str, n: int, block: int) -> int:
    """Return how many rows of C to time at size n: whole bands, at least 8 rows and ENOUGH work."""
    if name not in BANDS:
        return n
    band = BANDS[name] or block
    return min(n, band * -(-max(8, int(ENOUGH / n**2)) // band))


def block_sweep(sizes: Iterable[int], blocks: Iterable[int]) -> pd.DataFrame:
    """Run `time_rung` of the blocked rung at each size and for each BLOCK, with a progress bar."""
    places = product(sizes, blocks)
    return _timed([partial(time_rung, "cpu_avx_blocked", n, BLOCK=block) for n, block in places])


def ladder(sizes: Iterable[int], names: Iterable[str] | None = None, threads: int = 1) -> pd.DataFrame:
    """Run `time_rung` for each rung (default: all, and BLAS) at each size, with a progress bar."""
    places = product(sizes, names or [*RUNGS, BLAS])
    return _timed([partial(time_rung, name, n, threads) for n, name in places])


def _timed(runs: list[Callable[[], dict[str, Any]]]) -> pd.DataFrame:
    """Collect the rows of the runs, with a progress bar that disappears at the end."""
    from tqdm.auto import tqdm

    return frame_of(run() for run in tqdm(runs, "measuring", leave=False))
