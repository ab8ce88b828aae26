"""Record what Nsight Compute counts for the rungs of the GPU's ladder.

usage, on a machine with a GPU, CuPy and ncu: python benchmarks/record_counters.py data/h200
Writes two tables in the columns of labkit.records, and beside each a JSON file with GPU, driver, versions,
date and command. counters.csv: small launches of every kernel, for the simulator to be compared with; kernels
have their file's name there, matmul/2_tiled. ladder_counters.csv: every rung at one size, to say why one is
faster than another; rungs have the ladder's names there: tiled.
"""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path

import labkit
from labkit import records
from labkit.kernels.problem import problem
from labkit.kernels.tensor_matmul.family import TensorMatmul
from labkit.ladder import running
from labkit.ladder.running import Case, case
from labkit.records.tables import write

COUNTED = {
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
}
COUNTERS = {metric.format(op): unit for op in ("ld", "st") for unit, metric in COUNTED.items()}
# cp.async copies from global to shared memory (LDGSTS in machine code). They are among the loads above.
COPIED = {
    f"sm__sass_l1tex_t_{unit}_pipe_lsu_mem_global_op_ldgsts{cache}.sum": unit
    for unit in ("requests", "sectors")
    for cache in ("_cache_access", "_cache_bypass")
}
# Of kernels on tensor cores alone: ldmatrix (LDSM in machine code), wgmma (GMMA) and copies of tiles by TMA.
# ncu counts bank conflicts of ldmatrix among those of loads.
OF_TENSORS = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum": "conflicts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum": "wavefronts",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": "wavefronts",
    "smsp__inst_executed_op_ldsm.sum": "instructions",
    "sm__inst_executed_pipe_tensor_op_gmma.sum": "instructions",
    "sm__inst_executed_pipe_tensor_op_hmma.sum": "instructions",
    "smsp__inst_executed_op_tma_ld.sum": "instructions",
    "smsp__inst_executed_op_tma_st.sum": "instructions",
}
PERCENT = (
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",  # achieved occupancy
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",  # issue slots in use
)
WHY = {
    **COUNTERS,
    **COPIED,
    "lts__t_sectors.sum": "sectors",
    "dram__bytes_read.sum": "byte",
    "dram__bytes_write.sum": "byte",
    **dict.fromkeys(PERCENT, "%"),
    **OF_TENSORS,
    "smsp__inst_executed.sum": "instructions",
    "launch__registers_per_thread": "registers",
    "gpu__time_duration.sum": "ns",
}
SWEPT = ("naive", "naive_uncoalesced", "tiled")  # with blocks of several sides


def small() -> Iterator[Case]:
    """Every kernel, on sizes that are multiples of its tile and sizes that are not."""
    sizes = [(64, 64, 64), (100, 70, 45)]
    for rung, tile, size, dtype in product(SWEPT, (8, 16, 32), sizes, ("float32", "float64")):
        yield case(rung, problem("matmul", *size, dtype=dtype), TILE=tile)
    for rung, size in product(running.rungs("matmul"), [(256, 256, 64), (300, 203, 101)]):
        if rung not in SWEPT:
            yield case(rung, problem("matmul", *size))
    for rung, size, dtype in product(
        running.rungs("transpose"), [(128, 128), (100, 70)], ("float32", "float64")
    ):
        yield case(rung, problem("transpose", *size, dtype=dtype))


def on_tensor_cores() -> Iterator[Case]:
    """Every rung of tensor_matmul with every type that it takes, whole tiles and parts; rungs without TMA
    also where no row begins at 16 bytes.
    """
    for size, dtypes in (
        ((256, 256, 256), ("float16",)),
        ((200, 272, 144), TensorMatmul.dtypes),
        ((300, 203, 101), ("float16", "tf32")),
    ):
        for dtype in dtypes:
            of = problem("tensor_matmul", *size, dtype=dtype)
            yield from (each for each in running.cases(of) if each.rung != of.reference_name)


def whole() -> Iterator[Case]:
    """Every rung at one size; on tensor cores, at one that keeps them busy."""
    for family, size in (("matmul", (1024, 1024, 1024)), ("transpose", (2048, 2048))):
        for rung in running.rungs(family):
            yield case(rung, problem(family, *size))
    for rung in running.rungs("tensor_matmul"):
        yield case(rung, problem("tensor_matmul", 4096, 4096, 4096))


TABLES = {
    "counters": (lambda: chain(small(), on_tensor_cores()), COUNTERS | COPIED | OF_TENSORS),
    "ladder_counters": (whole, WHY),
}


def launch(table: str) -> None:
    """Launch the table's cases on this machine's GPU, in order."""
    for each in TABLES[table][0]():
        running.launcher(each, each.problem.args(labkit.xp))()


def output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def known(metrics: dict[str, str], listed: str) -> dict[str, str]:
    """The metrics, but for those that not every GPU has and that ncu does not list for this one: it would
    refuse them.
    """
    there = {line.split()[0] for line in listed.splitlines() if line.strip()}
    optional = (*COPIED, *PERCENT, *OF_TENSORS)
    absent = {name for name in optional if name.partition(".")[0] not in there} & metrics.keys()
    for metric in sorted(absent):
        print(f"not known to this ncu on this GPU, and left out: {metric}")
    return {metric: unit for metric, unit in metrics.items() if metric not in absent}


def counted(table: str, metrics: dict[str, str]) -> list[dict[str, str]]:
    """Metrics of each launch, in order."""
    command = ["ncu", "--clock-control", "none", "--metrics", ",".join(metrics), "--csv", "--page", "raw"]
    command += ["--print-units", "base", "--kernel-name", "regex:^(matmul|transpose|tensor_matmul)$"]
    found = output([*command, sys.executable, __file__, "--launch", table])
    return [row for row in csv.DictReader(io.StringIO(found[found.index('"ID"') :])) if row["ID"]]


def rows(table: str, case: Case, counts: dict[str, str], metrics: dict[str, str]) -> Iterator[dict]:
    """The table's rows of one launch; what ncu could not count is left out."""
    place = case.place()
    if table == "counters":
        place |= {"kernel": case.kernel, "tile": dict(case.macros).get("TILE")}
    for metric, unit in metrics.items():
        if metric in OF_TENSORS and case.family != "tensor_matmul":
            continue
        text = counts[metric].replace(",", "")
        if text.replace(".", "", 1).isdecimal():
            value = int(float(text)) if float(text).is_integer() else float(text)
            yield place | {"quantity": metric, "unit": unit, "value": value}


def main(folder: Path) -> None:
    """Write both tables."""
    version = output(["ncu", "--version"]).split("Version ")[1].split()[0]
    origin = records.provenance("python benchmarks/record_counters.py data/h200", ncu=version)
    listed = output(["ncu", "--query-metrics"])
    folder.mkdir(parents=True, exist_ok=True)
    for table, (cases, wanted) in TABLES.items():
        metrics = known(wanted, listed)
        launches = list(zip(cases(), counted(table, metrics), strict=True))
        lines = [row for each, counts in launches for row in rows(table, each, counts, metrics)]
        write(folder / f"{table}.csv", records.frame_of(lines))
        (folder / f"{table}.json").write_text(json.dumps(origin, indent=2) + "\n")
        print(f"{len(launches)} launches, {len(lines)} figures -> {folder / table}.csv")


if __name__ == "__main__":
    if sys.argv[1] == "--launch":
        launch(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
