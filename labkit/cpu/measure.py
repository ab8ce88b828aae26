"""Run, check and time kernels on the CPU, and measure what this machine can do at most.

A time is the median of repeated calls on the same arrays after a warm-up, with a fixed number of threads.
Arrays begin at a cache line.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import product
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pandas as pd

from labkit import kernels
from labkit.core.processor import caches, cpu_name
from labkit.cpu.kernel import Blas, CpuKernel
from labkit.device.timing import Timing
from labkit.kernels import verify
from labkit.kernels.problem import Matmul, Problem, Transpose
from labkit.kernels.problem import problem as make_problem
from labkit.ladder.records import COLUMNS, frame_of

LINE = 64  # bytes
MOST_ARRAYS = 2**28  # bytes of arrays that a measurement of bandwidth goes through
SHORTEST = 2e-4  # seconds: shorter calls are timed several at a time
SPINNING = 0.15  # seconds that OpenBLAS's threads keep their cores busy after a product

# One size of each kind that goes wrong: one element, around a vector and a tile, long and thin.
SIZES: dict[str, Sequence[tuple[int, ...]]] = {
    "matmul": (
        (1, 1, 1),
        (7, 7, 7),
        (31, 31, 31),
        (33, 33, 33),
        (45, 29, 67),
        (1000, 17, 333),
        (256, 256, 256),
    ),
    "transpose": ((1, 1), (7, 9), (31, 31), (33, 33), (45, 67), (1000, 17), (256, 256)),
}

# What the reports' tables and ours call the rungs, simplest first. `BLAS` is no kernel of ours.
BLAS = "cpu_blas"
RUNGS = {
    "cpu_naive": "matmul/cpu_1_loops",
    "cpu_loop_order": "matmul/cpu_2_loop_order",
    "cpu_avx": "matmul/cpu_3_simd",
    "cpu_avx_blocked": "matmul/cpu_4_blocked",
    "cpu_avx_blocked_bt": "matmul/cpu_5_blocked_bt",
    "cpu_register_tile": "matmul/cpu_6_register_tile",
    "cpu_packed": "matmul/cpu_7_packed",
    "cpu_threads": "matmul/cpu_8_threads",
    "cpu_strassen": "matmul/cpu_9_strassen",
}
# Rungs of which a band of rows of C costs as much as any other, and how high a band is; None: as BLOCK says.
BANDS = {"cpu_naive": 1, "cpu_loop_order": 1, "cpu_avx": 1, "cpu_avx_blocked": None}
ENOUGH = 45e6  # multiply-adds that are enough to time them


def arrays(problem: Problem) -> tuple[np.ndarray, ...]:
    """The problem's inputs and its output, each beginning at a cache line."""
    return tuple(_aligned(array) for array in problem.inputs())


def check(kernel: Any, sizes: Iterable[tuple[int, ...]] | None = None) -> verify.Verdict:
    """Run `kernel` (a CpuKernel or Blas) and compare with right results, within `kernel.tolerance(problem)`.

    The output is full of NaN (or the smallest int32) before. `sizes` are M, N, K or rows, cols.
    """
    chosen = [
        make_problem(kernel.family, *size, dtype=kernel.dtype, seed=number)
        for number, size in enumerate(sizes or SIZES[kernel.family])
    ]

    def run(problem: Problem) -> None:
        given = arrays(problem)
        with kernel.ready():
            kernel(*given)
        problem.verify(given[-1], kernel.tolerance(problem))

    return verify.judge(chosen, run, tile=8)


def measure(kernel: Any, problem: Problem, *, seconds: float = 0.5) -> Timing:
    """Time calls of `kernel` (a CpuKernel or Blas) for about `seconds`, after a warm-up that is not counted.

    A transpose goes through several pairs of arrays in turn, together larger than the caches as far as
    MOST_ARRAYS allows. A call that alone takes longer than `seconds` is made once, without a warm-up.
    """
    sets = [arrays(problem)]
    if isinstance(problem, Transpose):
        wanted = min(2 * max(caches().values(), default=2**25), MOST_ARRAYS)
        sets += [tuple(map(_aligned, sets[0])) for _ in range(min(wanted // problem.bytes, 15))]
    calls = [kernel.bind(*given) for given in sets]
    with kernel.ready():
        first = [_seconds(call, 1) for call in calls]
        samples = first if sum(first) > seconds * len(calls) else _samples(calls, seconds, first[-1])
    if isinstance(kernel, Blas) and kernel.threads > 1:
        sleep(SPINNING)  # or they would take the time of what is measured next
    return Timing(tuple(1e3 * sample for sample in samples), source(kernel.threads))


def source(threads: int) -> str:
    """The label of a time on this machine."""
    return f"measured here: {cpu_name()}, {threads} thread{'s' * (threads != 1)}"


@lru_cache
def peak_gflops(threads: int = 1, dtype: str = "float32") -> float:
    """Most operations that `threads` threads do, in 10^9 a second: multiply-adds without memory, two each."""
    work = Matmul(1024, 1024, 1024, dtype=dtype)
    timing = measure(kernels.load("matmul/cpu_0_peak", THREADS=threads, DTYPE=work.ctype), work)
    # The shortest: a ceiling is what the machine does when nothing disturbs it.
    return work.gflops(min(timing.samples) / 1e3)


@lru_cache
def copy_gbytes_per_s(dtype: str = "float32") -> float:
    """Bytes that a copy of a 4096 x 4096 matrix reads and writes, in 10^9 a second, with one thread."""
    plane = Transpose(4096, 4096, dtype=dtype)
    timing = measure(kernels.load("transpose/cpu_0_copy", DTYPE=plane.ctype), plane)
    return plane.gbytes_per_s(timing.seconds)


def rung(name: str, threads: int = 1, dtype: str = "float32", **parameters: int) -> CpuKernel | Blas:
    """A rung of RUNGS, or BLAS, in `threads` threads where it can.

    `parameters` are macros, such as BLOCK. Raises ValueError for another name.
    """
    if name == BLAS:
        return Blas(threads, dtype)
    if name not in RUNGS:
        raise ValueError(f"there is no rung {name!r}. Choose one of {', '.join([*RUNGS, BLAS])}.")
    return kernels.load(RUNGS[name], THREADS=threads, DTYPE=_ctype(dtype), **parameters)


def time_rung(
    name: str, n: int, threads: int = 1, *, seconds: float = 0.1, **parameters: int
) -> dict[str, Any]:
    """Time of an n x n x n product on a rung, as a row in the columns of `records.load`.

    Of the rungs in BANDS a few rows of C are enough: their time is scaled, and `note` says so.
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
    """Rows of C that are computed to time a rung at size n: whole bands, at least 8 rows and ENOUGH work."""
    if name not in BANDS:
        return n
    band = BANDS[name] or block
    return min(n, band * -(-max(8, int(ENOUGH / n**2)) // band))


def block_sweep(sizes: Iterable[int], blocks: Iterable[int]) -> pd.DataFrame:
    """`time_rung` of the blocked rung at each size and for each BLOCK, with a progress bar."""
    places = product(sizes, blocks)
    return _timed([partial(time_rung, "cpu_avx_blocked", n, BLOCK=block) for n, block in places])


def ladder(sizes: Iterable[int], names: Iterable[str] | None = None, threads: int = 1) -> pd.DataFrame:
    """`time_rung` of each rung (all, and BLAS) at each size, with a progress bar."""
    places = product(sizes, names or [*RUNGS, BLAS])
    return _timed([partial(time_rung, name, n, threads) for n, name in places])


def _ctype(dtype: str) -> str:
    return Matmul(1, 1, 1, dtype=dtype).ctype


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a cache line."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _timed(runs: list[Callable[[], dict[str, Any]]]) -> pd.DataFrame:
    """What the runs give, one after the other, with a bar that is gone at the end."""
    from tqdm.auto import tqdm

    return frame_of(run() for run in tqdm(runs, "measuring", leave=False))


def _samples(calls: Sequence[Callable[[], object]], seconds: float, one: float) -> list[float]:
    """Seconds of a call, taken in turns, until all together have taken `seconds`, at least three."""
    times = max(1, round(SHORTEST / one))
    samples: list[float] = []
    while len(samples) < 3 or sum(samples) * times < seconds:
        samples.append(_seconds(calls[len(samples) % len(calls)], times))
    return samples


def _seconds(call: Callable[[], object], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        call()
    return (perf_counter() - start) / times
