"""Time the transpose as report int-transpose did: copy in, 100 launches, copy out, by the host's clock.

`labkit.ladder` times something else: one launch after an L2 flush, without copies. Here the matrix of 2048 x
2048 stays in the L2 cache of a large GPU between launches, and the time includes the copies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from labkit import cpu, kernels, records
from labkit.c.compile import find_compiler
from labkit.devices.select import device, find_gpu
from labkit.devices.timing import wall_ms
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running
from labkit.ladder.running import END, Case, Row, Section, case, row_dicts

STEPS = ("naive", "shared", "padded", "unrolled")  # the report's steps after the CPU
SIZE = Transpose(2048, 2048, dtype="int32")
ITERATIONS = 100
TRIPS = 5  # the result is their median; the report made one


def transpose_report(
    rungs: Sequence[str] = STEPS, problem: Transpose = SIZE, iterations: int = ITERATIONS
) -> pd.DataFrame:
    """Make the report's table for `rungs` of `labkit.ladder`, with the columns and names of `records.load`.

    `time` (ms) covers both copies and all launches, `launch_time` the launches alone. `bandwidth` is what the
    launches move, in 10^9 bytes (the report: 2^30), over `time`. `step_speedup` compares with the rung
    before, `speedup_over_cpu` with plain loops in C on one core, also run `iterations` times. The rungs'
    results are verified. Raises NoGpu where there is no GPU: a simulator's times say nothing about one.
    """
    source = f"measured here: {find_gpu().name}"
    loops = cpu.measure(kernels.load("transpose/cpu_1_loops", DTYPE=problem.ctype), problem)
    on_cpu = before = loops.median * iterations
    first = running.Case("cpu_naive", problem)
    rows = _rows(first, iterations, {"machine": cpu.cpu_name(), "source": loops.source}, time=on_cpu)
    for rung in rungs:
        case = running.case(rung, problem)
        whole, launches = _round_trip(case, iterations)
        ratios = {"step_speedup": before / whole, "speedup_over_cpu": on_cpu / whole}
        rows += _rows(case, iterations, {"source": source}, time=whole, launch_time=launches, **ratios)
        before = whole
    return records.frame_of(rows)


def here() -> pd.DataFrame:
    """Measure `time` of the report's steps on this machine's GPU, for `plots`; empty where there is none."""
    if device().kind != "gpu":
        return records.frame_of([])
    table = transpose_report()
    return table[table.quantity == "time"]


def _round_trip(case: running.Case, iterations: int) -> tuple[float, float]:
    """Return the milliseconds from a matrix on the host to its transpose there, and of the launches alone."""
    import cupy

    host, result = case.problem.inputs()
    args = case.problem.args(cupy)
    launch = running.launcher(case, args)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        launch()  # loads the kernel, which a graph cannot record
        stream.synchronize()
        # Record a CUDA graph: Python takes longer to launch such a kernel than the GPU takes to run it.
        stream.begin_capture()
        for _ in range(iterations):
            launch()
        launches = stream.end_capture()

        def trip() -> None:
            args[0].set(host)
            launches.launch()
            args[1].get(out=result)

        running.poison(args[1])
        trip()
        case.problem.verify(result)
        times = [(wall_ms(trip), wall_ms(launches.launch)) for _ in range(TRIPS)]
    whole, alone = zip(*times, strict=True)
    return median(whole), median(alone)


def _rows(case: running.Case, iterations: int, place: running.Row, **figures: float) -> list[running.Row]:
    figures["bandwidth"] = case.problem.gbytes_per_s(figures["time"] / 1e3 / iterations)
    units = {"time": "ms", "launch_time": "ms", "bandwidth": "GB/s"}
    shared = case.place() | place | {"note": f"for {iterations} iterations"}
    return [
        shared | {"quantity": quantity, "unit": units.get(quantity, "1"), "value": value}
        for quantity, value in figures.items()
    ]


@dataclass(frozen=True)
class AsReported(Case):
    """The steps of report int-transpose, timed as the report did, see `transpose_report`."""

    def place(self) -> Row:
        """Return the columns that identify the case, with a note of how many launches a time covers."""
        return super().place() | {"note": f"for {ITERATIONS} iterations"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Make one row per step and quantity, the CPU's first; `args` are not used.

        The table's `time`, of all iterations and copies, becomes REPORT_TIME, as `time` is that of one
        launch.
        """
        table = transpose_report(problem=SIZE).replace({"quantity": {"time": records.REPORT_TIME}})
        return [*row_dicts(table), self.place() | {"quantity": END, "unit": "1", "value": TRIPS}]


def _as_reported(quick: bool) -> Iterator[Case]:
    """Yield the report's steps, timed as the report did, where a C compiler is available."""
    if find_compiler():
        yield AsReported("naive", SIZE, case("naive", SIZE).macros)


SECTIONS: dict[str, Section] = {"transpose": _as_reported}
