"""Time kernels.

On a GPU, CUDA events time each launch after an L2 flush; compilation and copies are not included. In the
simulator there is only the host's clock, and the result says so: its wall time is never a GPU's. Beside the
time of a launch stands the time that is predicted for it.
"""

import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from labkit.devices.select import array_module, device, sm_clock_mhz, synchronize
from labkit.devices.timed_launch import Launched, launched
from simt.common.bits import as_cupy_bits
from simt.common.errors import SimtError
from simt.common.launches import watched
from simt.common.occupancy import DEFAULT_GPU
from simt.common.text import article
from simt.kernel import Predicted

if TYPE_CHECKING:
    from simt import AnyKernel

logger = logging.getLogger(__name__)

SIMULATED = "simulator wall time, not a GPU's"
KERNEL = "kernel"
MOST = 50  # launches per batch
STEADY = 0.01  # medians of two batches agree if they differ by less
BUSY = 10  # milliseconds; no single launch keeps the host busy for longer
WAKING = 0.1  # seconds of work that bring an idle GPU's clock up

# Rows of a breakdown: the step, and the kind of host memory that it depends on.
STEPS = (
    ("context creation", ""),
    ("allocation", ""),
    ("pinning", "pinned"),
    ("host to device", "pageable"),
    ("host to device", "pinned"),
    (KERNEL, ""),
    ("device to host", "pageable"),
    ("device to host", "pinned"),
    ("end to end", "pageable"),
    ("end to end", "pinned"),
)
# A process that prints how many milliseconds CUDA takes to start on GPU argv[1], without the import of CuPy.
_START_CUDA = """
import sys, time
from cupy.cuda import runtime
start = time.perf_counter()
runtime.setDevice(int(sys.argv[1]))
runtime.free(0)
print(1e3 * (time.perf_counter() - start))
"""

Samples = tuple[float, ...]  # milliseconds
Grid = int | Sequence[int]
Arrays = tuple[np.ndarray, ...]
Round = dict[tuple[str, str], float]  # milliseconds per row of STEPS


class Problem(Protocol):
    """What a breakdown needs of a problem, see `kernels.problem.Problem`."""

    def inputs(self) -> Arrays:
        """Return the host arrays before a launch, including the output."""

    def args(self, xp: Any) -> tuple[Any, ...]:
        """Return the arguments of a launch: new arrays of `xp`, then scalars."""

    def scalars(self) -> tuple[np.generic, ...]:
        """Return what the kernel takes after its arrays."""

    def output(self, args: tuple[Any, ...]) -> Any:
        """Return the output array among the arguments of a launch."""


@dataclass(frozen=True, repr=False)
class Timing:
    """The milliseconds of each sample, and `source`: where they were measured. Printing shows both.

    `clock_mhz` is the clock of the GPU's multiprocessors during the measurement, None where it is not known.
    `launch` is the launch that was timed, where each call made one. Printing then adds its predicted time.
    """

    samples: Samples
    source: str
    clock_mhz: int | None = None
    launch: Launched | None = field(default=None, compare=False)

    @property
    def median(self) -> float:
        """Return the milliseconds that half of the samples did not exceed."""
        return median(self.samples)

    @property
    def p20(self) -> float:
        """Return the milliseconds that a fifth of the samples did not exceed."""
        return float(np.percentile(self.samples, 20))

    @property
    def p80(self) -> float:
        """Return the milliseconds that four fifths of the samples did not exceed."""
        return float(np.percentile(self.samples, 80))

    @property
    def seconds(self) -> float:
        """Return the median in seconds, as `problem.gflops` takes it."""
        return self.median / 1e3

    @cached_property
    def predicted(self) -> Predicted | None:
        """Return the time that is predicted for the launch on this GPU; from the simulator, on an H200.

        It is worked out when it is first asked for, in a second or so. None where there was no single launch,
        and where its time cannot be predicted.
        """
        if self.launch is None:
            return None
        try:
            return self.launch.predict(DEFAULT_GPU if self._is_simulated else device().name)
        except Exception as error:  # a measurement is not lost for want of a prediction
            logger.debug("not predicted: %s", error)
            return None

    @property
    def _is_simulated(self) -> bool:
        return self.source == SIMULATED

    def __repr__(self) -> str:
        count = f"{len(self.samples)} sample{'s' * (len(self.samples) != 1)}"
        clock = f", SMs at {self.clock_mhz} MHz" if self.clock_mhz else ""
        spread = f"p20 {self.p20:.4g}, p80 {self.p80:.4g}, {count}{clock}"
        return f"{self.median:.4g} ms ({spread}; {self.source}){self._prediction}"

    @property
    def _prediction(self) -> str:
        found = self.predicted
        if found is None:
            return ""
        time, low, high = (f"{1e3 * each:.3g}" for each in (found.seconds, found.low, found.high))
        where = f" for {article(DEFAULT_GPU)}:" if self._is_simulated else ""
        return f"; predicted{where} {time} ms ({low} to {high})"


def nothing() -> None:
    """Do nothing before or after a launch."""


def time_kernel(
    launch: Callable[[], object],
    *,
    seconds: float = 0.5,
    before: Callable[[], object] = nothing,
    after: Callable[[], object] = nothing,
) -> Timing:
    """Time `launch()`, which must run its work on `labkit.device()`, as the kernels of `labkit.RawModule` do.

    On a GPU, `launch` is called until its time is steady or all calls took about `seconds`, see
    `until_steady`; a longer launch is called once. The call should take the host less than 0.1 ms, so compute
    grid and block before. The simulator is slow and steady: there it is one warm-up and three samples.
    `before` and `after` are called around each launch; their time does not count. Raises ValueError for a
    negative time.
    """
    if seconds < 0:
        raise ValueError(f"seconds={seconds}. Choose the time to measure for: 0 (one launch) or more.")
    with watched() as seen:
        if device().kind != "gpu":
            samples, calls = _wall_times(launch, seconds, before, after)
            return Timing(samples, SIMULATED, launch=launched(seen, calls))
        batch = _EventBatch(launch, before, after)
        batch.wake()
        samples = until_steady(batch, seconds)
        if batch.host_ms > BUSY:  # that launch was also compiled, or tried in the simulator: time another
            samples = until_steady(batch, seconds)
    return Timing(samples, _here(), batch.clock_mhz, launched(seen, batch.calls))


def until_steady(
    batch: Callable[[int], Samples], seconds: float, clock: Callable[[], float] = perf_counter
) -> Samples:
    """Call `batch(launches)` until the medians of two consecutive batches agree; these two are the samples.

    This leaves out the first launch, which loads code, and a changing clock. A first launch that takes longer
    than `seconds` is the only sample. If no two batches agree in that time, the last one is used.
    """
    start = clock()
    last = batch(1)
    while clock() - start <= seconds:
        before, last = last, batch(_launches(median(last), seconds / 2))
        alike = len(last) <= 2 * len(before)  # one launch says little about fifty
        if alike and abs(median(last) - median(before)) <= STEADY * median(last):
            return before + last
    return last


def _launches(one: float, seconds: float) -> int:
    """Return how many launches take about `seconds`, if one takes `one` milliseconds."""
    return max(1, min(MOST, int(1e3 * seconds / max(one, 1e-3))))


def wall_ms(step: Callable[[], object]) -> float:
    """Return the milliseconds of `step()` and the work it put on the device, by the host's clock."""
    synchronize()
    start = perf_counter()
    step()
    synchronize()
    return (perf_counter() - start) * 1e3


def breakdown(
    problem: Problem, kernel: "AnyKernel", grid: Grid, block: Grid, repeats: int = 10
) -> pd.DataFrame:
    """Time each step from host arrays to a host result in milliseconds, by the host's clock, synchronised.

    There is one row per step of STEPS. Allocation, pinning and copies include all the problem's arrays; "end
    to end" goes from allocation to result. Copies use pageable host memory, which the system may move and
    CUDA therefore copies twice, and pinned memory, which it may not move. Columns: `step`, `host_memory`,
    `first_ms`, then `calls`, `min_ms`, `avg_ms` and `max_ms` of the `repeats` after it, and `source`.

    The first call of a kernel also loads its code, unless it ran before, as a kernel that is tried in the
    simulator first has. Context creation is the start of CUDA in a separate process, without the import of
    CuPy: a program pays for it once, in its first CUDA call, often an allocation. In the simulator there is
    only the kernel's row, of at most three repeats: its arrays are in host memory, with nothing to allocate
    or copy.
    """
    if array_module(kernel) is np:
        rounds = [_simulator_round(problem, kernel, grid, block) for _ in range(1 + min(repeats, 3))]
        return _step_table(rounds, SIMULATED)
    if kernel.rehearse:
        kernel(grid, block, problem.args(kernel.xp))  # now, as the rehearsal is not part of any step
    rounds, host = [{STEPS[0]: _start_cuda()}], tuple(map(as_cupy_bits, problem.inputs()))
    rounds += [_gpu_round(problem, kernel, grid, block, host) for _ in range(1 + repeats)]
    rounds += [_pinned_round(problem, kernel, grid, block, host) for _ in range(1 + repeats)]
    return _step_table(rounds, _here())


def _step_table(rounds: list[Round], source: str) -> pd.DataFrame:
    rows = []
    for step in STEPS:
        if times := [each[step] for each in rounds if step in each]:
            first, *later = times
            row = {"step": step[0], "host_memory": step[1], "first_ms": first, "calls": len(later)}
            statistics = pd.Series(later, dtype=float).agg(["min", "mean", "max"])
            rows.append(row | dict(zip(("min_ms", "avg_ms", "max_ms"), statistics, strict=True)))
    return pd.DataFrame(rows).assign(source=source)


def _here() -> str:
    return f"measured here: {device().name}"


class _EventBatch:
    """Time `count` launches in milliseconds with CUDA events, each after an L2 flush: `batch(count)`.

    The flush leaves the L2 full of lines that are not yet in memory, as a memset does in NVIDIA's NVBench. A
    kernel pays for writing back the lines that it displaces, and leaves its own behind.
    """

    def __init__(
        self, launch: Callable[[], object], before: Callable[[], object], after: Callable[[], object]
    ) -> None:
        import cupy

        # Twice the L2, and so large (130 us at 4 TB/s) that the launch is queued before its turn comes:
        # otherwise the events would also measure how fast the host launches.
        self._flush = cupy.empty(max(2 * device().l2_bytes, 512 * 2**20), cupy.uint8)
        self._launch, self._before, self._after, self._cuda = launch, before, after, cupy.cuda
        self.clock_mhz: int | None = None
        self.host_ms = 0.0  # the longest call of `launch`
        self.calls = 0  # of `launch`

    def wake(self) -> None:
        """Work for WAKING: an idle GPU lowers its clock to a fraction and takes time to raise it again."""
        start = perf_counter()
        while perf_counter() - start < WAKING:
            self._flush.fill(0)
            synchronize()

    def __call__(self, count: int) -> Samples:
        events = [(self._cuda.Event(), self._cuda.Event()) for _ in range(count)]
        self.host_ms = 0.0
        self.calls += count
        for start, end in events:
            self._before()
            self._flush.fill(0)
            start.record()
            called = perf_counter()
            self._launch()
            self.host_ms = max(self.host_ms, 1e3 * (perf_counter() - called))
            end.record()
            self._after()
        self.clock_mhz = sm_clock_mhz()  # while the GPU works
        synchronize()
        return tuple(self._cuda.get_elapsed_time(start, end) for start, end in events)


def _wall_times(
    launch: Callable[[], object], seconds: float, before: Callable[[], object], after: Callable[[], object]
) -> tuple[Samples, int]:
    """Return the milliseconds of some calls of `launch`, and how often it was called."""

    def sample() -> float:
        before()
        ms = wall_ms(launch)
        after()
        return ms

    first = sample()
    return ((first,), 1) if first > 1e3 * seconds else (tuple(sample() for _ in range(3)), 4)


def _pinned_round(problem: Problem, kernel: "AnyKernel", grid: Grid, block: Grid, host: Arrays) -> Round:
    """Time a round trip from copies of `host` in pinned memory: the rows that depend on it."""
    pinned: list[np.ndarray] = []
    times = {("pinning", "pinned"): wall_ms(lambda: pinned.extend(map(_page_locked, host)))}
    for array, values in zip(pinned, host, strict=True):
        array[...] = values
    trip = _gpu_round(problem, kernel, grid, block, tuple(pinned), "pinned")
    return times | {step: spent for step, spent in trip.items() if step[1]}


def _gpu_round(
    problem: Problem, kernel: "AnyKernel", grid: Grid, block: Grid, host: Arrays, memory: str = "pageable"
) -> Round:
    """Time a round trip from the arrays `host`; the result is written to the output among them."""
    import cupy

    arrays: list[Any] = []
    with cupy.cuda.using_allocator(None):  # use cudaMalloc each time, not CuPy's pool
        times = {
            ("allocation", ""): wall_ms(lambda: arrays.extend(cupy.empty(a.shape, a.dtype) for a in host)),
            ("host to device", memory): wall_ms(
                lambda: [array.set(values) for array, values in zip(arrays, host, strict=True)]
            ),
            (KERNEL, ""): wall_ms(lambda: kernel(grid, block, (*arrays, *problem.scalars()))),
            ("device to host", memory): wall_ms(
                lambda: problem.output(tuple(arrays)).get(out=problem.output(host))
            ),
        }
    return times | {("end to end", memory): sum(times.values())}


def _page_locked(array: np.ndarray) -> np.ndarray:
    """Return an array of that shape and dtype in memory from cudaHostAlloc, not from CuPy's pool."""
    from cupy.cuda import PinnedMemory, PinnedMemoryPointer

    return np.ndarray(array.shape, array.dtype, PinnedMemoryPointer(PinnedMemory(array.nbytes), 0))


def _start_cuda() -> float:
    command = [sys.executable, "-c", _START_CUDA, str(device().index)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:  # such as a GPU in exclusive mode, which serves one process only
        reason = (done.stderr.strip() or "no message").splitlines()[-1]
        raise SimtError(f"CUDA does not start in a second process: {reason}")
    return float(done.stdout)


def _simulator_round(problem: Problem, kernel: "AnyKernel", grid: Grid, block: Grid) -> Round:
    args = problem.args(np)
    return {(KERNEL, ""): wall_ms(lambda: kernel(grid, block, args))}
