"""Time kernels.

On a GPU with CUDA events, each sample one launch after an L2 flush; compilation and copies are not in it.
In the simulator there is only the host's clock, and the result says so: its wall time is never a GPU's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from labkit.device import array_module, device, synchronize
from labkit.problems import Problem, Shape

SIMULATED = "simulator wall time, not a GPU's"
KERNEL = "kernel"
NOT_HERE = "no GPU here: nothing to measure"


@dataclass(frozen=True, repr=False)
class Timing:
    "Milliseconds of each sample, and `source`: where they were measured. Prints both."

    samples: tuple[float, ...]
    source: str

    @property
    def median(self) -> float:
        "Half of the samples took no longer, in milliseconds."
        return median(self.samples)

    @property
    def p20(self) -> float:
        "A fifth of the samples took no longer, in milliseconds."
        return float(np.percentile(self.samples, 20))

    @property
    def p80(self) -> float:
        "Four fifths of the samples took no longer, in milliseconds."
        return float(np.percentile(self.samples, 80))

    @property
    def seconds(self) -> float:
        "The median in seconds, as `problem.gflops` takes it."
        return self.median / 1e3

    def __repr__(self) -> str:
        spread = f"p20 {self.p20:.4g}, p80 {self.p80:.4g}, {len(self.samples)} samples"
        return f"{self.median:.4g} ms ({spread}; {self.source})"


def time_kernel(launch: Callable[[], object], *, warmup: int = 3, samples: int = 50) -> Timing:
    """Time `launch()`, which must put its work on `labkit.device()`, as the kernels of `labkit.RawModule` do.

    The simulator is slow and steady: there, one warm-up and at most three samples.
    """
    if samples < 1 or warmup < 0:
        raise ValueError(
            f"samples={samples}, warmup={warmup}. Choose at least 1 sample and no negative warm-up."
        )
    if device().kind == "gpu":
        return Timing(_event_times(launch, warmup, samples), _here())
    return Timing(_wall_times(launch, min(warmup, 1), min(samples, 3)), SIMULATED)


def breakdown(
    problem: Problem, kernel: Any, tile: int = 16, rows: int | None = None, repeats: int = 10
) -> pd.DataFrame:
    """Milliseconds of each step from host arrays to a host result, by the host's clock, synchronised.

    A row a step: allocation, host to device, kernel, device to host. Columns: `first_ms` (a kernel's first
    launch also loads its code), `later_ms` (median of `repeats`) and `source`. In the simulator at most three
    repeats, and only the kernel's row has figures: its arrays lie in host memory, with nothing to copy.
    """
    grid, block = problem.launch(tile, rows)
    on_gpu = array_module(kernel) is not np
    steps, later_runs = (_gpu_steps, repeats) if on_gpu else (_simulator_steps, min(repeats, 3))
    first, *later = [steps(problem, kernel, grid, block) for _ in range(1 + later_runs)]
    table = pd.DataFrame({"first_ms": pd.Series(first), "later_ms": pd.DataFrame(later).median()})
    table["source"] = [
        _here() if on_gpu else SIMULATED if step == KERNEL else NOT_HERE for step in table.index
    ]
    return table.rename_axis("step")


def _here() -> str:
    return f"measured here: {device().name}"


def _event_times(launch: Callable[[], object], warmup: int, samples: int) -> tuple[float, ...]:
    import cupy

    # Twice the L2, and so large (130 us at 4 TB/s) that the launch is queued before its turn comes: otherwise
    # the events would also measure how fast the host launches.
    flush = cupy.empty(max(2 * device().l2_bytes, 512 * 2**20), cupy.uint8)
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(samples)]
    for _ in range(warmup):
        launch()
    for start, end in events:
        flush.fill(0)
        start.record()
        launch()
        end.record()
    synchronize()
    return tuple(cupy.cuda.get_elapsed_time(start, end) for start, end in events)


def _wall_times(launch: Callable[[], object], warmup: int, samples: int) -> tuple[float, ...]:
    for _ in range(warmup):
        launch()
    return tuple(_clock(launch) for _ in range(samples))


def _gpu_steps(problem: Problem, kernel: Any, grid: Shape, block: Shape) -> dict[str, float]:
    import cupy

    host = problem.inputs()
    arrays: list[Any] = []
    with cupy.cuda.using_allocator(None):  # cudaMalloc each time, not CuPy's pool
        return {
            "allocation": _clock(lambda: arrays.extend(cupy.empty(a.shape, a.dtype) for a in host)),
            "host to device": _clock(lambda: [array.set(a) for array, a in zip(arrays, host, strict=True)]),
            KERNEL: _clock(lambda: kernel(grid, block, (*arrays, *problem.scalars()))),
            "device to host": _clock(lambda: problem.output(tuple(arrays)).get()),
        }


def _simulator_steps(problem: Problem, kernel: Any, grid: Shape, block: Shape) -> dict[str, float]:
    args, nothing = problem.args(np), float("nan")
    simulated = _clock(lambda: kernel(grid, block, args))
    return {
        "allocation": nothing,
        "host to device": nothing,
        KERNEL: simulated,
        "device to host": nothing,
    }


def _clock(step: Callable[[], object]) -> float:
    "Milliseconds of `step()` and what it put on the device."
    synchronize()
    start = perf_counter()
    step()
    synchronize()
    return (perf_counter() - start) * 1e3
