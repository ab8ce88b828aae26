"""The CPU's rungs beside NumPy's BLAS, the transposes beside a copy: times, rates, percent of the ceiling.

    python benchmarks/cpu_matmul.py                 all rungs at 1024, 2048 and 4096, with one thread and two
    python benchmarks/cpu_matmul.py --sizes 2048 --rungs cpu_packed,cpu_threads --threads 1,2,4

The best rungs and BLAS are timed in turns, several rounds, and their ratio is the median of the rounds'
ratios: a change of the clock's rate, or a neighbour on the machine, meets both. Last line: best rung / BLAS.
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from labkit import cpu, kernels
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.transpose.family import Transpose

ROUNDS = 7
WITHOUT_THREADS = [name for name in cpu.RUNGS if name not in ("cpu_threads", "cpu_strassen")]
SLOW = ("cpu_naive", "cpu_avx")  # minutes at 4096, even a few rows at a time: not timed there
BEST = {
    1: ("cpu_packed", "cpu_threads"),
    2: ("cpu_threads",),
}  # Strassen's errors are larger, so it is not compared
PLANES = (1024, 4000, 4096)

console = Console(width=110)


def main(
    sizes: Annotated[str, typer.Option(help="N, with commas between")] = "1024,2048,4096",
    rungs: Annotated[str, typer.Option(help="names, with commas between; all if empty")] = "",
    threads: Annotated[str, typer.Option(help="numbers of threads, with commas between")] = "1,2",
) -> None:
    """Print the tables."""
    chosen, counts = [int(n) for n in sizes.split(",")], [int(n) for n in threads.split(",")]
    names = rungs.split(",") if rungs else [*cpu.RUNGS, cpu.BLAS]
    library = cpu.Blas().name
    console.print(f"{cpu.cpu_name()}, {cpu.cores()} cores, caches {cpu.caches()}, {library}")
    for n in chosen:
        show_rungs(n, names, counts)
    show_transposes()
    for n in chosen:
        shares = [f"{count} thread{'s' * (count != 1)} {best_share(n, count):.2f}" for count in counts]
        if n != 2048:
            console.print(f"best/{library.split()[0]} N={n}: {', '.join(shares)}")
        else:
            last = f"best/{library.split()[0]} N={n}: {', '.join(shares)}"
    if 2048 in chosen:
        console.print(last)


def show_rungs(n: int, names: list[str], counts: list[int]) -> None:
    """Each rung at one size; those without threads once."""
    table = Table(title=f"matmul N={n}, float32")
    for column in ("rung", "threads", "ms", "GFLOP/s", "% of FMA rate", "x rung below", "note"):
        table.add_column(column, justify="left" if column in ("rung", "note") else "right")
    for count in counts:
        ceiling, below = cpu.peak_gflops(count), None
        for name in names:
            if (count > 1 and name in WITHOUT_THREADS) or (n > 2048 and name in SLOW):
                continue
            row = cpu.time_rung(name, n, count)
            rate = Matmul(n, n, n).gflops(row["value"] / 1e3)
            step = f"{below / row['value']:.2f}" if below else ""
            table.add_row(
                name,
                str(count),
                f"{row['value']:.2f}",
                f"{rate:.1f}",
                f"{100 * rate / ceiling:.0f}",
                step,
                row["note"],
            )
            below = row["value"]
    console.print(table)


class NumPyCopy(cpu.Blas):
    """What most programs call a copy: it reads the lines that it overwrites."""

    family, name = "transpose", "numpy.copyto"

    def __init__(self) -> None:
        self.threads, self.dtype = 1, "float32"

    def bind(self, *arrays: np.ndarray) -> Callable[[], object]:
        """Copies the first array to the second."""
        return partial(np.copyto, arrays[1].reshape(arrays[0].shape), arrays[0])


def show_transposes() -> None:
    """Each rung of the transpose; the first is the best copy."""
    table = Table(title="transpose, float32, 1 thread")
    for column in ("rung", "N", "ms", "GB/s", "of the copy"):
        table.add_column(column, justify="left" if column == "rung" else "right")
    for n in PLANES:
        problem, copy = Transpose(n, n), None
        rungs = [kernels.load(name) for name in kernels.names("transpose", "cpu")]
        for kernel in [rungs[0], NumPyCopy(), *rungs[1:]]:
            rate = problem.gbytes_per_s(cpu.measure(kernel, problem).seconds)
            copy, name = copy or rate, kernel.name
            table.add_row(
                name, str(n), f"{problem.bytes / rate / 1e6:.2f}", f"{rate:.1f}", f"{rate / copy:.2f}"
            )
    console.print(table)


def best_share(n: int, threads: int) -> float:
    """BLAS's time over that of the best rung, the median of ROUNDS rounds."""
    problem, blas = Matmul(n, n, n), cpu.Blas(threads)
    rivals = [cpu.rung(name, threads) for name in BEST[min(threads, 2)]]
    shares: list[list[float]] = [[] for _ in rivals]
    for _ in range(ROUNDS):
        reference = cpu.measure(blas, problem).median
        for share, kernel in zip(shares, rivals, strict=True):
            share.append(reference / cpu.measure(kernel, problem).median)
    return max(median(share) for share in shares)


if __name__ == "__main__":
    typer.run(main)
