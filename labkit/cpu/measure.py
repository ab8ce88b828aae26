"""Run, check and time kernels on the CPU, and measure what this machine can do at most.

A time is the median of repeated calls on the same arrays after a warm-up, with a fixed number of threads.
Arrays begin at a cache line.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from time import perf_counter, sleep
from typing import Any

import numpy as np

from labkit import kernels
from labkit.cpu.blas import Blas
from labkit.devices.timing import Timing
from labkit.kernels import verify
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import Problem, problem_class
from labkit.kernels.problem import problem as make_problem
from labkit.kernels.transpose.family import Transpose
from simt.common.processor import caches, cpu_name

LINE = 64  # bytes
MOST_ARRAYS = 2**28  # bytes of arrays that a measurement of bandwidth goes through
SHORTEST = 2e-4  # seconds; shorter calls are timed several at a time
SPINNING = 0.15  # seconds that OpenBLAS's threads keep their cores busy after a product


def arrays(problem: Problem) -> tuple[np.ndarray, ...]:
    """Return the problem's inputs and its output, each beginning at a cache line."""
    return tuple(_aligned(array) for array in problem.inputs())


def check(kernel: Any, sizes: Iterable[tuple[int, ...]] | None = None) -> verify.Verdict:
    """Run `kernel` (a CpuKernel or Blas) and compare with right results, within `kernel.tolerance(problem)`.

    The output is full of NaN (or the smallest int32) before. `sizes` are those of the problem, in its order.
    """
    kind = problem_class(kernel.family)
    chosen = [
        make_problem(kernel.family, *size, dtype=kernel.dtype, seed=number)
        for number, size in enumerate(sizes or kind.cpu_check_sizes or kind.check_sizes)
    ]

    def run(problem: Problem) -> None:
        given = arrays(problem)
        with kernel.ready():
            kernel(*given)
        problem.verify(problem.output(given), kernel.tolerance(problem))

    return verify.judge(chosen, run, tile=8)


def measure(kernel: Any, problem: Problem, *, seconds: float = 0.5) -> Timing:
    """Time calls of `kernel` (a CpuKernel or Blas) for about `seconds`, after a warm-up that is not counted.

    Where memory is the limit, the calls use several sets of arrays in turn, together larger than the caches
    as far as MOST_ARRAYS allows. A call that alone takes longer than `seconds` is made once, without a
    warm-up.
    """
    sets = [arrays(problem)]
    if problem.unit == "GB/s":
        wanted = min(2 * max(caches().values(), default=2**25), MOST_ARRAYS)
        sets += [tuple(map(_aligned, sets[0])) for _ in range(min(wanted // problem.bytes, 15))]
    calls = [kernel.bind(*given) for given in sets]
    with kernel.ready():
        first = [_seconds(call, 1) for call in calls]
        samples = first if sum(first) > seconds * len(calls) else _samples(calls, seconds, first[-1])
    if isinstance(kernel, Blas) and kernel.threads > 1:
        sleep(SPINNING)  # otherwise they would slow down the next measurement
    return Timing(tuple(1e3 * sample for sample in samples), source(kernel.threads))


def source(threads: int) -> str:
    """Return the label of a time on this machine."""
    return f"measured here: {cpu_name()}, {threads} thread{'s' * (threads != 1)}"


@lru_cache
def peak_gflops(threads: int = 1, dtype: str = "float32") -> float:
    """Measure the 10^9 operations per second of `threads` threads: multiply-adds, two operations each."""
    # A long call never has a busy core to itself, and rungs, whose calls are short, would lie above the peak.
    side = 256 if threads == 1 else 1024
    work = Matmul(side, side, side, dtype=dtype)
    timing = measure(kernels.load("matmul/cpu_0_peak", THREADS=threads, DTYPE=work.ctype), work)
    # The shortest time: a ceiling is what the machine does when nothing disturbs it.
    return work.gflops(min(timing.samples) / 1e3)


@lru_cache
def copy_gbytes_per_s(dtype: str = "float32") -> float:
    """Measure the 10^9 bytes per second that one thread reads and writes, copying a 4096 x 4096 matrix."""
    plane = Transpose(4096, 4096, dtype=dtype)
    timing = measure(kernels.load("transpose/cpu_0_copy", DTYPE=plane.ctype), plane)
    return plane.gbytes_per_s(timing.seconds)


def _aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy that begins at a cache line."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _samples(calls: Sequence[Callable[[], object]], seconds: float, one: float) -> list[float]:
    """Return seconds per call, of the calls in turn, until all took `seconds` together; at least three."""
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
