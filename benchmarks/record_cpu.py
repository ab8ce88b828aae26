"""Record how long the rungs of the CPU's product take on this machine, for the picture of the whole climb.

    python benchmarks/record_cpu.py data/cpu

Writes data/cpu/products.csv, in the columns of `labkit.records`, and products.json, which says on what. Each
time is the least of ROUNDS medians: other programs on the machine make a product slower, and never faster.
`note` says how many threads ran, how the source was compiled, and whether a few rows of C were timed
and scaled.
"""

import json
import platform
import sys
from datetime import date
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from labkit import cpu, kernels, records  # noqa: E402
from labkit.c.function import CFunction  # noqa: E402
from labkit.cpu.products import RUNGS, rows_timed  # noqa: E402
from labkit.kernels.matmul.family import Matmul  # noqa: E402
from labkit.records import tables  # noqa: E402

N = 4096  # as the products of the GPU that stand beside them
ROUNDS = 5
# The rungs that the picture shows, and those between them; Strassen's method does fewer operations.
ONE_THREAD = [name for name in RUNGS if name not in ("cpu_threads", "cpu_strassen")]

console = Console()


def main(folder: Annotated[Path, typer.Argument(help="where the table goes, such as data/cpu")]) -> None:
    """Measure everything, and write the table with its provenance."""
    folder.mkdir(parents=True, exist_ok=True)
    cores = cpu.cores()
    places = [("-O0", 1), *((name, 1) for name in ONE_THREAD), (cpu.BLAS, 1)]
    places += [("cpu_threads", cores), (cpu.BLAS, cores)]
    least: dict[tuple[str, int], dict] = {}
    peaks: dict[int, float] = {}
    for _ in range(ROUNDS):
        for threads in sorted({1, cores}):
            cpu.peak_gflops.cache_clear()
            peaks[threads] = max(peaks.get(threads, 0), cpu.peak_gflops(threads))
        for place in places:
            row = unoptimised() if place[0] == "-O0" else cpu.time_rung(place[0], N, place[1])
            if place not in least or row["value"] < least[place]["value"]:
                least[place] = row
            rate = 2 * N**3 / least[place]["value"] / 1e6
            console.print(
                f"{place[0]}, {place[1]} threads: {row['value']:.5g} ms, at most {rate:.4g} GFLOP/s"
            )
    rows = [{**row, "note": noted(place, row["note"])} for place, row in least.items()]
    rows += [peak(threads, rate) for threads, rate in peaks.items()]
    for row in rows:
        row["machine"] = cpu.cpu_name()
    tables.write(folder / "products.csv", rounded(records.frame_of(rows)))
    about = {
        "processor": f"{cpu.cpu_name()}, {cores} cores",
        "versions": f"{cpu.Blas().name}, Python {platform.python_version()}",
        "date": date.today().isoformat(),
        "command": f"python benchmarks/record_cpu.py {folder}",
        "note": f"each time the least of {ROUNDS} medians, on a machine that other programs used, too",
    }
    (folder / "products.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def unoptimised() -> dict:
    """Time the three loops as the compiler leaves them without optimisation: `-O0`."""
    rows = rows_timed("cpu_naive", N, 1)
    A, B, C = Matmul(rows, N, N).inputs()
    loops = CFunction(kernels.source_with_includes(RUNGS["cpu_naive"]), "matmul", ["-O0"])
    took = loops.time(A, B, C, rows, N, N, samples=3).median
    return {
        **cpu.time_rung("cpu_naive", 64, seconds=0.001),
        **dict.fromkeys(("m", "n", "k"), N),
        "value": took * N / rows,
        "note": f"{rows} of {N} rows of C, scaled",
    }


def peak(threads: int, rate: float) -> dict:
    """Return the row of the most multiply-adds per second that so many threads do."""
    return {
        "problem": "matmul",
        "kernel": "peak",
        "dtype": "float32",
        "quantity": "performance",
        "unit": "GFLOP/s",
        "value": rate,
        "note": noted(("peak", threads), "multiply-adds without memory"),
    }


def noted(place: tuple[str, int], note: str) -> str:
    """Write what `note` says beside the threads and the options of the compiler."""
    level = ["-O0"] if place[0] == "-O0" else []
    return "; ".join([f"threads={place[1]}", *level, *([note] if note else [])])


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep five digits of each figure."""
    return frame.assign(value=[float(f"{value:.5g}") for value in frame.value])


if __name__ == "__main__":
    typer.run(main)
