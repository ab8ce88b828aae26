"""Time of the course's kernels in the simulator: a table, one row a kernel and size.

usage: python benchmarks/simulator.py [--threads 1] [--sizes 128,256,512]

first: from the source to the first result, nothing cached. best: the fastest of the warm runs. counted:
the same with the counters on. ns/step: best, for 32 multiply-adds (a transpose: 32 elements), a thread of
the host.
"""

import os
import tempfile
import time

os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

KERNELS = {"matmul/1_naive": 16, "matmul/2_tiled": 16, "transpose/3_padded": 32, "transpose/4_unrolled": 32}
WARM_RUNS = 7


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(name: str, tile: int, size: int, threads: int) -> list[str]:
    "One row of the table."
    import labkit

    os.environ["LABKIT_CACHE"] = tempfile.mkdtemp()  # nothing is compiled before it is timed
    family = name.partition("/")[0]
    problem = labkit.problem(family, *[size] * (3 if family == "matmul" else 2))
    grid, block = problem.launch(tile, 8 if name == "transpose/4_unrolled" else None)
    args = problem.args(np)

    def from_source() -> None:
        module = labkit.simt.RawModule(code=labkit.kernels.source(name), options=(f"-DTILE={tile}",))
        module.get_function(family)(grid, block, args)

    first = seconds(from_source)
    problem.verify(problem.output(args))
    kernel = labkit.kernels.load(name, TILE=tile)
    best = min(seconds(lambda: kernel(grid, block, args)) for _ in range(WARM_RUNS))
    kernel.profile(grid, block, args)
    counted = min(seconds(lambda: kernel.profile(grid, block, args)) for _ in range(2))
    steps = (size**3 if family == "matmul" else size**2) / 32
    figures = [
        f"{first:.3f}",
        f"{1e3 * best:.2f}",
        f"{1e3 * counted:.1f}",
        f"{1e9 * best * threads / steps:.2f}",
    ]
    return [name, str(tile), str(size), *figures]


def main(threads: int = 1, sizes: str = "128,256,512") -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    table = Table(title=f"simulator, {threads} thread(s) of the host")
    for heading in ("kernel", "tile", "N", "first, s", "best, ms", "counted, ms", "ns/step"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for name, tile in KERNELS.items():
        for size in map(int, sizes.split(",")):
            table.add_row(*measure(name, tile, size, threads))
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
