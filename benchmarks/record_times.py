"""Record the times and the counters of the kernels in benchmarks/timed on a GPU.

usage, on a machine with a GPU, CuPy and ncu: python benchmarks/record_times.py data/h200
Writes data/h200/timed/times.csv, one row per launch, with its provenance in times.json, and counters.csv,
Nsight Compute's metrics of the same launches. Each launch is timed with a
flushed L2. Rows are written as they come: what a time limit cuts off is there, but for the last ones.

Each kernel is compiled as labkit compiles it for a GPU, with -lineinfo and NVRTC's defaults.
`--compiled cubins --compile-only` does that on a machine without a GPU, and `--compiled cubins` uses it.
"""

import csv
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from gallery import Argument, Case  # noqa: E402
from record_gallery import architecture, built, count, number, output, place, say  # noqa: E402
from timed import Launch, launches, values  # noqa: E402

from labkit import records  # noqa: E402

PARTS = ("times", "counters")
SECONDS = 0.15  # to measure each launch for
AT_A_TIME = 80  # launches per run of ncu, whose table comes at its end
# Regular expressions for whole names; those are recorded that ncu lists for this GPU.
METRICS = (
    r"gpu__time_duration\.sum",
    r"sm__cycles_elapsed\.max",
    r"sm__cycles_active\.avg",
    r"smsp__inst_(executed|issued)\.sum",
    r"smsp__issue_active\.avg\.pct_of_peak_sustained_active",
    r"sm__inst_executed_pipe_(alu|fma|fmaheavy|fp64|xu|lsu|fp16|uniform)\.sum",
    r"l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_(ld|st)\.sum",
    r"l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit\.sum",
    r"l1tex__data_pipe_lsu_wavefronts(_mem_shared)?\.sum",
    r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared\.sum",
    r"l1tex__throughput\.avg\.pct_of_peak_sustained_active",
    r"lts__t_sectors_srcunit_tex(_op_read|_op_write|_lookup_hit)?\.sum",
    r"lts__throughput\.avg\.pct_of_peak_sustained_elapsed",
    r"dram__bytes_(read|write)\.sum",
    r"dram__throughput\.avg\.pct_of_peak_sustained_elapsed",
    r"sm__warps_active\.avg\.pct_of_peak_sustained_active",
)
OF_LAUNCH = (
    "waves_per_multiprocessor",
    "registers_per_thread",
    *(f"occupancy_limit_{what}" for what in ("registers", "shared_mem", "blocks", "warps")),
)
SUFFIXES = (
    ".sum",
    ".max",
    ".avg",
    *(f".avg.pct_of_peak_sustained_{when}" for when in ("active", "elapsed")),
)
PLACE = ("launch", "kernel", "kind", "set", "grid", "block", "shared")
TIMES = (*PLACE, "median_ms", "p20_ms", "p80_ms", "clock_mhz", "samples")


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    match: Annotated[str, typer.Option(help="a regular expression for the names of launches")] = "",
    only: Annotated[list[str] | None, typer.Option(help=f"one of {', '.join(PARTS)}")] = None,
    compiled: Annotated[Path | None, typer.Option(help="kernels that --compile-only left here")] = None,
    compile_only: Annotated[bool, typer.Option(help="fill --compiled for an H200; needs no GPU")] = False,
    drive: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Record times and counters; or, with --drive, launch what a plan says."""
    if drive is not None:
        launch_all(drive)
        return
    if unknown := set(only or PARTS) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}; --only is one of {', '.join(PARTS)}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        work = compiled or Path(scratch)
        work.mkdir(exist_ok=True)
        wanted = [each for each in launches() if re.search(match, each.name)]
        units = {unit(each.case).name: unit(each.case) for each in wanted}
        good = {case.name for case in built([*units.values()], work, _architecture(compile_only))}
        wanted = [each for each in wanted if unit(each.case).name in good]
        say(start, f"{len(wanted)} launches of {len(good)} programs compiled")
        if compile_only:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            if part in (only or PARTS):
                table = folder / {"times": "times.csv", "counters": "counters.csv"}[part]
                origin = provenance(folder, part, work, compiled)
                table.with_suffix(".json").write_text(json.dumps(origin, indent=2) + "\n")
                {"times": times, "counters": counters}[part](table, wanted, work, start)
    say(start, f"all -> {folder}")


def _architecture(compile_only: bool) -> str:
    return "sm_90" if compile_only else architecture()


def unit(case: Case) -> Case:
    """Return the case as a program to compile: launches of a file with the same options share it."""
    return replace(case, name=re.sub(r"[^\w=-]", "", "".join([case.file, *case.options])))


# ------------------------------------------------------------------------------------------------ launching


class Ready:
    """A launch with its kernel loaded and its arrays on the GPU."""

    def __init__(self, case: Case, work: Path) -> None:
        import cupy

        cubin = place(unit(case), work)
        self.case = case
        self.kernel = cupy.RawModule(path=str(cubin.resolve())).get_function(
            cubin.with_suffix(".entry").read_text()
        )
        numbers = tuple(argument for argument in case.arguments if argument.shape is None)
        scalars = replace(case, arguments=numbers).args()
        self.args = tuple(
            scalars[argument.name] if argument.shape is None else on_device(argument)
            for argument in case.arguments
        )

    def __call__(self) -> None:
        self.kernel(self.case.grid, self.case.block, self.args, shared_mem=self.case.shared_mem)


def on_device(argument: Argument) -> Any:
    """Return an array on the GPU with the values of `timed.values`, repeated by copies on the GPU."""
    import cupy

    host, array = values(argument), cupy.empty(argument.shape, argument.dtype)
    done, size = host.nbytes, array.nbytes
    if done == host.itemsize:  # one number: make 1 MiB of it here
        host = host.repeat(min(array.size, 2**20 // host.itemsize))
        done = host.nbytes
    array.data.copy_from_host(host.ctypes.data, done)
    while done < size:
        more = min(done, size - done)
        (array.data + done).copy_from_device(array.data, more)
        done += more
    return array


def free() -> None:
    """Give the memory of arrays that are gone back to the GPU."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def launch_all(plan: Path) -> None:
    """Launch those that a plan names: {"names": [...], "work": folder}; a failure ends the program."""
    import cupy

    told = json.loads(plan.read_text())
    known = {each.name: each for each in launches()}
    for name in told["names"]:
        ready = Ready(known[name].case, Path(told["work"]))
        ready()
        cupy.cuda.Device().synchronize()
        del ready
        free()


# ------------------------------------------------------------------------------------------------ recording


def times(path: Path, wanted: Sequence[Launch], work: Path, start: float) -> None:
    """Write times.csv: the median, p20 and p80 of each launch, in milliseconds."""
    from labkit.devices.timing import time_kernel

    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TIMES)
        for done, each in enumerate(wanted, 1):
            try:
                timing = time_kernel(Ready(each.case, work), seconds=SECONDS)
            except Exception as error:  # CuPy has several kinds
                say(start, f"{each.name} is left out: {error}")
                continue
            finally:
                free()
            figures = (f"{figure:.6g}" for figure in (timing.median, timing.p20, timing.p80))
            writer.writerow([*where(each), *figures, timing.clock_mhz or "", len(timing.samples)])
            file.flush()
            say(start, f"{done} of {len(wanted)}  {each.name}  {timing.median:.4g} ms")


def where(each: Launch) -> list[str]:
    """Return what the columns of PLACE say of a launch."""
    case = each.case
    return [
        each.name,
        each.kernel,
        each.kind,
        each.set,
        _shape(case.grid),
        _shape(case.block),
        str(case.shared_mem),
    ]


def _shape(sizes: Sequence[int]) -> str:
    """Return three sizes as 8x8x1."""
    return "x".join(map(str, [*sizes, 1, 1][:3]))


def counters(path: Path, wanted: Sequence[Launch], work: Path, start: float) -> None:
    """Write counters.csv: Nsight Compute's metrics, in runs of AT_A_TIME launches."""
    metrics = [*known(output(["ncu", "--query-metrics"])), *(f"launch__{what}" for what in OF_LAUNCH)]
    say(start, f"{len(metrics)} metrics")
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*PLACE, *metrics])
        for first in range(0, len(wanted), AT_A_TIME):
            some = wanted[first : first + AT_A_TIME]
            plan = work / "time_counters.json"
            plan.write_text(json.dumps({"names": [each.name for each in some], "work": str(work)}))
            command = [sys.executable, str(Path(__file__).resolve()), str(work), "--drive", str(plan)]
            found = count(command, metrics, {each.case.entry for each in some})
            for each, row in zip(some, found, strict=False):
                if each.case.entry != row["Kernel Name"].partition("(")[0]:
                    raise SystemExit(f"{each.name} is out of step: ncu counted {row['Kernel Name']}")
                writer.writerow([*where(each), *(number(row.get(metric) or "") for metric in metrics)])
            file.flush()
            say(start, f"{first + len(found)} of {len(wanted)} launches counted")
            if len(found) < len(some):
                say(start, f"{some[len(found)].name} failed; it and what follows in its run are left out")


def known(listed: str) -> list[str]:
    """Return METRICS as ncu names them, of those that it lists for this GPU."""
    pattern = re.compile("|".join(METRICS))
    names = sorted({line.split()[0] for line in listed.splitlines() if line.strip()})
    return [f"{name}{suffix}" for name in names for suffix in SUFFIXES if pattern.fullmatch(name + suffix)]


def provenance(folder: Path, part: str, work: Path, compiled: Path | None) -> dict[str, str]:
    """Return where and how the records came about."""
    command = f"python benchmarks/record_times.py {folder.as_posix()} --only {part}"
    command += f" --compiled {compiled.name}" if compiled else ""
    versions = {"NVRTC": (work / "nvrtc").read_text()}
    if part == "counters":
        versions["ncu"] = output(["ncu", "--version"]).split("Version ")[1].split()[0]
    return records.provenance(command, **versions)


if __name__ == "__main__":
    typer.run(main)
