"""Transposes of many sizes and types beside a copy: the copy's time over each rung's.

    python benchmarks/transpose_sizes.py

The copy is cudaMemcpyAsync from device to device. Rungs and copy are timed in turns, each after an L2 flush,
as `labkit bench` does. Where arrays lie in memory changes a transpose, and a copy alike, by some percent: so
a ratio is the median of several rounds, each with its arrays in another place. The first round also verifies
each rung, on the GPU.
"""

import sys
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from labkit import kernels
from labkit.devices.select import NoGpu, find_gpu
from labkit.kernels.transpose.family import Transpose

SQUARES = tuple((n, n) for n in (4096, 8192, 12288, 16384))
ODD = ((4097, 4097), (8191, 8191), (5003, 7001), (16383, 16383))
RUNGS = ("0_copy", "4_unrolled", "5_vectorised", "6_any_size")
ROUNDS, TURNS = 3, 9
SPACER = 17 * 2**20  # bytes between the arrays of one round and the next, twice as many each time
FLUSH = 512 * 2**20  # bytes: so large that a launch is queued before its turn comes

console = Console(width=120)


def ratios(problem: Transpose) -> Iterator[tuple[str, float]]:
    """Yield "GB/s of the copy" and its rate, then each rung and the copy's time over the rung's."""
    import cupy

    flush, spacers, rounds = cupy.empty(FLUSH, cupy.uint8), [], []
    for number in range(ROUNDS):
        matrix, out = arrays(problem)
        launches = {name: launch(name, problem, matrix, out) for name in RUNGS}
        for name in RUNGS[1:] if number == 0 else ():
            out.fill(0)
            launches[name]()
            if not (matrix == out.T).all():
                raise SystemExit(f"transpose/{name} is wrong on {problem}.")
        copy = {"memcpy": lambda to=out, of=matrix: to.data.copy_from_device_async(of.data, of.nbytes)}
        rounds.append(milliseconds(copy | launches, lambda: flush.fill(0)))
        del matrix, out, launches, copy
        cupy.get_default_memory_pool().free_all_blocks()
        spacers.append(cupy.empty(SPACER << number, cupy.uint8))
    yield "GB/s of the copy", problem.gbytes_per_s(median(each["memcpy"] for each in rounds) / 1e3)
    for name in RUNGS:
        yield name, median(each["memcpy"] / each[name] for each in rounds)


def arrays(problem: Transpose):
    """Make the matrix, of numbers that hardly repeat, and the output, on the GPU and as unsigned integers."""
    import cupy

    dtype = np.dtype(f"u{np.dtype(problem.dtype).itemsize}")
    mixed = cupy.arange(problem.rows * problem.cols, dtype=np.uint32) * np.uint32(2654435761)
    matrix = (mixed ^ mixed >> 15).astype(dtype).reshape(problem.rows, problem.cols)
    return matrix, cupy.empty((problem.cols, problem.rows), dtype)


def launch(name: str, problem: Transpose, *both) -> Callable[[], None]:
    """Return a launch of a rung with its own macros; of the copy with its best, blocks of 16 x 16."""
    macros = {"DTYPE": problem.ctype} | ({"TILE": 16} if name == "0_copy" else {})
    kernel = kernels.load(f"transpose/{name}", DTYPE=problem.ctype)
    grid, block = kernels.launch(f"transpose/{name}", problem, **macros)
    return lambda: kernel(grid, block, (*both, *problem.scalars()))


def milliseconds(launches: dict[str, Callable[[], None]], flush: Callable[[], None]) -> dict[str, float]:
    """Time launches in turns; return the median of each."""
    from cupy.cuda import Event, get_elapsed_time

    events = []
    for name, each in [*launches.items()] * TURNS:
        start, end = Event(), Event()
        flush()
        start.record()
        each()
        end.record()
        events.append((name, start, end))
    end.synchronize()
    return {
        name: median(get_elapsed_time(start, end) for other, start, end in events if other == name)
        for name in launches
    }


def main() -> None:
    """Print a table for each type."""
    try:
        console.print(str(find_gpu()))
    except NoGpu as none:
        sys.exit(str(none))
    for dtype in Transpose.dtypes:
        columns = {size: dict(ratios(Transpose(*size, dtype=dtype))) for size in (*SQUARES, *ODD)}
        table = Table("", title=f"{dtype}: time of cudaMemcpy / time")
        for rows, cols in columns:
            table.add_column(f"{rows}" if rows == cols else f"{rows} x {cols}", justify="right")
        for name in ("GB/s of the copy", *RUNGS):
            places = 0 if name.startswith("GB") else 3
            table.add_row(name, *(f"{column[name]:.{places}f}" for column in columns.values()))
        console.print(table)


if __name__ == "__main__":
    main()
