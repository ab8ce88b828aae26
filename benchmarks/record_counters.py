"""Record what Nsight Compute counts for the course's kernels, for the simulator to be compared with.

usage, on a machine with a GPU, CuPy and ncu: python benchmarks/record_counters.py data/h200
Writes counters.csv (the columns of labkit.records) and counters.json (GPU, driver, versions, date, command).
"""

import csv
import datetime
import io
import itertools
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import labkit
from labkit.problems import Problem
from labkit.records import COLUMNS

COUNTED = {
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op",
}
METRICS = {f"{name}_{op}.sum": unit for op in ("ld", "st") for unit, name in COUNTED.items()}
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Case:
    "One launch: a kernel, its problem and its tile."

    kernel: str
    problem: Problem
    tile: int

    @property
    def rows(self) -> int | None:
        "Rows of threads a block; None: as many as the tile has."
        return 8 if self.kernel == "transpose/4_unrolled" else None

    def run(self) -> None:
        "Launch on this machine's device."
        kernel = labkit.kernels.load(self.kernel, DTYPE=self.problem.ctype, TILE=self.tile)
        kernel(*self.problem.launch(self.tile, self.rows), self.problem.args(labkit.xp))


def cases() -> list[Case]:
    "Every kernel of the course, on sizes that are multiples of the tile and sizes that are not."
    products = itertools.product(
        labkit.kernels.names("matmul"), (8, 16, 32), ((64, 64, 64), (100, 70, 45)), DTYPES
    )
    turns = itertools.product(labkit.kernels.names("transpose"), ((128, 128), (100, 70)), DTYPES)
    return [
        *(
            Case(name, labkit.problem("matmul", *size, dtype=dtype), tile)
            for name, tile, size, dtype in products
        ),
        *(Case(name, labkit.problem("transpose", *size, dtype=dtype), 32) for name, size, dtype in turns),
    ]


def counted_by_ncu() -> list[dict[str, str]]:
    "Metrics of each launch, in order."
    command = ["ncu", "--clock-control", "none", "--metrics", ",".join(METRICS), "--csv", "--page", "raw"]
    command += ["--print-units", "base", "--kernel-name", "regex:^(matmul|transpose)$"]
    command += [sys.executable, __file__, "--launch"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    table = output[output.index('"ID"') :]
    return [row for row in csv.DictReader(io.StringIO(table)) if row["ID"]]


def rows(case: Case, counts: dict[str, str], machine: str) -> list[dict[str, object]]:
    "The table's rows of one launch."
    problem = case.problem
    block = problem.launch(case.tile, case.rows)[1]
    sizes = {
        name.lower(): getattr(problem, name)
        for name in ("M", "N", "K", "rows", "cols")
        if hasattr(problem, name)
    }
    common = dict.fromkeys(COLUMNS, "") | sizes
    common |= {"machine": machine, "problem": case.kernel.partition("/")[0], "kernel": case.kernel}
    common |= {"dtype": problem.dtype, "block_x": block[0], "block_y": block[1], "tile": case.tile}
    return [
        common | {"quantity": name, "unit": unit, "value": int(float(counts[name].replace(",", "")))}
        for name, unit in METRICS.items()
    ]


def provenance() -> dict[str, str]:
    "Where and how the figures came about."
    import cupy

    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = (
        subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    )
    ncu = subprocess.run(["ncu", "--version"], check=True, capture_output=True, text=True).stdout.split(
        "Version "
    )[1]
    versions = ", ".join(
        [
            f"CUDA runtime {cupy.cuda.runtime.runtimeGetVersion()}",
            f"CuPy {cupy.__version__}",
            f"ncu {ncu.split()[0]}",
            f"Python {platform.python_version()}",
        ]
    )
    date = datetime.date.today().isoformat()
    command = "python benchmarks/record_counters.py data/h200"
    return {"gpu": name, "driver": driver, "versions": versions, "date": date, "command": command}


def main(folder: Path) -> None:
    origin, counts = provenance(), counted_by_ncu()
    table = [
        row for case, count in zip(cases(), counts, strict=True) for row in rows(case, count, origin["gpu"])
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "counters.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(table)
    (folder / "counters.json").write_text(json.dumps(origin, indent=2) + "\n")
    print(f"{len(counts)} launches, {len(table)} figures -> {folder}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--launch"]:
        for one in cases():
            one.run()
    else:
        main(Path(sys.argv[1]))
