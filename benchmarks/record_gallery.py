"""Record what a GPU, Nsight Compute and compute-sanitizer say of the kernels in tests/gallery.

usage, on a machine with a GPU, CuPy, ncu and compute-sanitizer: python benchmarks/record_gallery.py data/h200
Writes data/h200/gallery/: results.npz (outputs of the clean kernels), counters.csv (one row per launch),
sanitizer.csv (one row per kernel, tool and kind of finding), sanitizer.log (the tools' own words) and
provenance.json.

Kernels are compiled by NVRTC for the GPU's architecture with -lineinfo and its default options, as the
simulator compiles them; CuPy's own compilation would add -ftz=true.
"""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from gallery import Case, cases  # noqa: E402

from labkit import records  # noqa: E402

FILE_NAME = "kernel.cu"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PARTS = ("results", "counters", "sanitizer")
SECONDS = 20  # a sanitizer that takes longer has met a deadlock
PER_OPERATION = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio",
)
METRICS = (
    *(metric.format(op) for metric in PER_OPERATION for op in ("ld", "st")),
    "launch__registers_per_thread",
    *(f"launch__occupancy_limit_{what}" for what in ("registers", "shared_mem", "blocks", "warps")),
    "sm__maximum_warps_per_active_cycle_pct",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
)


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    only: Annotated[list[str] | None, typer.Option(help=f"some of {', '.join(PARTS)}")] = None,
    jobs: Annotated[int, typer.Option(help="sanitizers at a time")] = min(12, os.cpu_count() or 1),
    match: Annotated[str, typer.Option(help="a regular expression for the names of kernels")] = "",
    compiled: Annotated[Path | None, typer.Option(help="kernels that --compile-only left here")] = None,
    compile_only: Annotated[bool, typer.Option(help="fill --compiled for an H200; needs no GPU")] = False,
    drive: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Record results, counters and the sanitizer's findings; or, with --drive, launch what a plan says."""
    if drive is not None:
        launch(drive)
        return
    if unknown := set(only or PARTS) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}; --only is one of {', '.join(PARTS)}")
    folder, start = folder / "gallery", time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    clean, bugs = (
        [case for case in cases(name) if re.search(match, case.name)] for name in ("clean", "bugs")
    )
    with tempfile.TemporaryDirectory() as scratch:
        work = compiled or Path(scratch)
        work.mkdir(exist_ok=True)
        arch = "sm_90" if compile_only else architecture()
        clean, bugs = (
            built(clean, work, arch),
            built([case for case in bugs if not refused(case)], work, arch),
        )
        say(start, f"{len(clean)} clean launches and {len(bugs)} bugs compiled")
        if compile_only:
            return
        for part in PARTS:
            if part in (only or PARTS):
                {"results": results, "counters": counters, "sanitizer": sanitizer}[part](
                    folder, work, clean, bugs, jobs
                )
                say(start, f"{part} recorded")
        origin = provenance(folder.parent, (work / "nvrtc").read_text())
    (folder / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")
    say(start, f"all -> {folder}")


def say(start: float, text: str) -> None:
    print(f"{time.perf_counter() - start:6.1f} s  {text}", flush=True)


def refused(case: Case) -> bool:
    """Is there nothing to run? A launch with a wrong type of array runs on a GPU."""
    return case.refused is not None and not case.file.startswith("dtype")


# ---------------------------------------------------------------------------------- compiling and launching


def built(wanted: list[Case], work: Path, arch: str) -> list[Case]:
    """Compile each case to a cubin in `work`, its entry's name beside it; says what does not compile."""
    good = []
    for case in wanted:
        if place(case, work).exists():
            good.append(case)
            continue
        try:
            cubin, entry, version = compile_cubin(case, arch)
        except RuntimeError as error:
            print(f"{case.name} is left out: it does not compile here\n{error}", flush=True)
            continue
        place(case, work).write_bytes(cubin)
        place(case, work).with_suffix(".entry").write_text(entry)
        (work / "nvrtc").write_text(version)
        good.append(case)
    return good


def place(case: Case, work: Path) -> Path:
    return work / f"{case.family}-{case.name}.cubin"


def compile_cubin(case: Case, arch: str) -> tuple[bytes, str, str]:
    """Machine code, the entry's lowered name, the compiler's version. Raises RuntimeError with its
    messages.
    """
    from cuda.bindings import nvrtc

    from simt.compiler.nvrtc import with_defaults

    def ask(answer: tuple) -> object:
        status, *values = answer
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(status.name)
        return values[0] if values else None

    program = ask(nvrtc.nvrtcCreateProgram(case.source.encode(), FILE_NAME.encode(), 0, [], []))
    for name in case.name_expressions:
        ask(nvrtc.nvrtcAddNameExpression(program, name.encode()))
    options = [f"--gpu-architecture={arch}", "-lineinfo", *with_defaults(case.options)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytes(ask(nvrtc.nvrtcGetProgramLogSize(program)))
        ask(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(log.decode(errors="replace"))
    cubin = bytes(ask(nvrtc.nvrtcGetCUBINSize(program)))
    ask(nvrtc.nvrtcGetCUBIN(program, cubin))
    entry = case.entry
    if case.name_expressions:
        entry = ask(nvrtc.nvrtcGetLoweredName(program, case.entry.encode())).decode()
    ask(nvrtc.nvrtcDestroyProgram(program))
    _, major, minor = nvrtc.nvrtcVersion()
    return cubin, entry, f"{major}.{minor}"


def architecture() -> str:
    """Of the GPU that is here, such as sm_90."""
    import cupy

    return f"sm_{cupy.cuda.Device().compute_capability}"


def launch(plan: Path, others: Iterable[Case] = ()) -> None:
    """Launch the cases of a plan: {"names": [[family, name], ...], "work": folder, "outputs": file or null}.

    They are the gallery's and those of `others`. Arrays lie in allocations of just their size, so that a
    sanitizer sees the byte behind their end.
    """
    import cupy

    cupy.cuda.set_allocator(None)
    told = json.loads(plan.read_text())
    ours = [case for family in ("clean", "bugs") for case in cases(family)]
    known = {(case.family, case.name): case for case in [*ours, *others]}
    outputs = {}
    for family, name in told["names"]:
        case = known[family, name]
        cubin = place(case, Path(told["work"]))
        kernel = cupy.RawModule(path=str(cubin)).get_function(cubin.with_suffix(".entry").read_text())
        args = {key: on_device(arg) for key, arg in case.args(empty=cupy.empty).items()}
        try:
            kernel(case.grid, case.block, tuple(args.values()), shared_mem=case.shared_mem)
            cupy.cuda.Device().synchronize()
        except Exception as error:  # CuPy has several kinds; after any of them CUDA takes no more work
            print(f"{name}: {error}", file=sys.stderr)
            break
        outputs |= {f"{case.name}/{key}": args[key].get() for key in case.named("out")}
    if told["outputs"]:
        np.savez_compressed(told["outputs"], **outputs)
    if len(outputs) < len(told["names"]):  # a launch has at least one output
        raise SystemExit(1)


def on_device(arg: object) -> object:
    """An array on the GPU; a structure of 16 bytes as the only scalar of that size that every CuPy takes."""
    import cupy

    if isinstance(arg, np.ndarray):
        return cupy.asarray(arg)
    return np.frombuffer(arg.tobytes(), np.complex128)[0] if isinstance(arg, np.void) else arg


def driving(
    work: Path, wanted: list[Case], label: str, outputs: Path | None = None, program: str = __file__
) -> list[str]:
    """The command that launches these cases, with this program or another that takes --drive."""
    plan = work / f"{label}.json"
    names = [[case.family, case.name] for case in wanted]
    plan.write_text(
        json.dumps({"names": names, "work": str(work), "outputs": outputs and str(outputs.resolve())})
    )
    return [sys.executable, str(Path(program).resolve()), str(work), "--drive", str(plan)]


# ------------------------------------------------------------------------------------------------ results


def results(folder: Path, work: Path, clean: list[Case], _bugs: list[Case], _jobs: int) -> None:
    """results.npz: what the clean kernels leave in their outputs, as launch/argument."""
    command = driving(work, clean, "results", folder / "results.npz")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"stopped at a launch that failed:\n{done.stderr[-2000:]}", flush=True)


# ------------------------------------------------------------------------------------------------ counters


def counters(folder: Path, work: Path, clean: list[Case], _bugs: list[Case], _jobs: int) -> None:
    """counters.csv: Nsight Compute's metrics of each clean launch, in one run of ncu."""
    counted = count(driving(work, clean, "counters"), METRICS, {case.entry for case in clean})
    if len(counted) != len(clean):
        print(f"ncu counted {len(counted)} of {len(clean)} launches", flush=True)
    with (folder / "counters.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["launch", *METRICS])
        for case, row in zip(clean, counted, strict=False):
            if case.entry.partition("<")[0] not in row["Kernel Name"]:
                raise SystemExit(f"{case.name} is out of step: ncu counted {row['Kernel Name']}")
            writer.writerow([case.name, *(number(row.get(metric) or "") for metric in METRICS)])


def count(
    command: list[str], metrics: Sequence[str], entries: Iterable[str], options: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Nsight Compute's metrics of each launch of these kernels that `command` makes, in order."""
    names = "|".join(sorted({entry.partition("<")[0] for entry in entries}))
    ncu = ["ncu", "--clock-control", "none", "--metrics", ",".join(metrics), "--csv", "--page", "raw"]
    ncu += ["--print-units", "base", "--kernel-name", f"regex:^({names})$", *options]
    done = subprocess.run([*ncu, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if '"ID"' not in done.stdout:
        raise SystemExit(f"ncu counted nothing:\n{done.stdout[-2000:]}")
    said, table = done.stdout.split('"ID"', 1)
    if done.returncode:
        print(f"ncu ended with {done.returncode}:\n{said[-2000:]}", flush=True)
    return [row for row in csv.DictReader(io.StringIO(f'"ID"{table}')) if row["ID"].isdigit()]


def number(text: str) -> str:
    """Return the shortest exact form, 12 for 12.000 and 1200 for 1,200; leave text unchanged."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() else str(value)


# ----------------------------------------------------------------------------------------------- sanitizer


def sanitizer(folder: Path, work: Path, clean: list[Case], bugs: list[Case], jobs: int) -> None:
    """sanitizer.csv: what each tool says of each bug, and of all clean kernels in one process (named
    `clean`).
    """
    runs = [
        (case.name, tool, driving(work, [case], f"bug-{case.name}")) for case in bugs for tool in tools(case)
    ]
    runs += [("clean", tool, driving(work, clean, "clean")) for tool in TOOLS]
    runs.reverse()  # the long ones first
    help_text = subprocess.run(["compute-sanitizer", "--help"], capture_output=True, text=True).stdout
    rows, logs = [], []
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(sanitized, tool, command, help_text, 240 if name == "clean" else SECONDS): (
                name,
                tool,
            )
            for name, tool, command in runs
        }
        for count, done in enumerate(as_completed(waiting), 1):
            (name, tool), (text, ended) = waiting[done], done.result()
            note = "killed" if not ended else "" if "SUMMARY" in text else "no summary"
            for kind, hits, lines in findings(text) or [("", 0, [])]:
                rows.append([name, tool, kind, hits, " ".join(map(str, lines)), note])
            said = [line for line in text.splitlines() if "Host Frame" not in line][:40]
            logs.append(f"##### {name} {tool}\n" + "\n".join(said) + "\n")
            if count % 25 == 0 or name == "clean":
                print(
                    f"          {count} of {len(runs)} runs; {name} under {tool}: {rows[-1][2:]}", flush=True
                )
    with (folder / "sanitizer.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "tool", "kind", "hits", "lines", "note"])
        writer.writerows(sorted(rows))
    (folder / "sanitizer.log").write_text("\n".join(sorted(logs)))


def tools(case: Case) -> tuple[str, ...]:
    """The tools to run: one is enough for a loop that does not end, or an array of the wrong type."""
    alone = any(expected.tool == "timeout" for expected in case.expected) or case.refused
    return ("memcheck",) if alone else TOOLS


def sanitized(tool: str, command: list[str], help_text: str, seconds: float) -> tuple[str, bool]:
    """What compute-sanitizer prints, and whether it came to its end in time."""
    options = ["--tool", tool, "--print-limit", "20", "--report-api-errors", "no"]
    if tool == "initcheck" and "--initcheck-address-space" in help_text:
        options += ["--initcheck-address-space", "all"]
    if "--show-backtrace" in help_text:
        options += ["--show-backtrace", "device"]
    if "--max-connections" in help_text:
        options += ["--max-connections", "100"]
    running = subprocess.Popen(
        ["compute-sanitizer", *options, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return running.communicate(timeout=seconds)[0], True
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        try:
            return running.communicate(timeout=5)[0], False
        except subprocess.TimeoutExpired:  # a child in a group of its own still holds the pipe
            return "", False


HEAD = re.compile(
    r"^=+ +((?:Invalid|Misaligned|Uninitialized|Barrier error|Stack overflow|Address|Illegal|Unknown Error|"
    r"Error: |Warning: |Race reported|Warp|Malloc|User trap|Trap|Divergent|Assert|Unspecified)[^\n]*)",
    re.M,
)
LINE = re.compile(rf"{re.escape(FILE_NAME)}:(\d+)")


def findings(text: str) -> list[tuple[str, int, list[int]]]:
    """Kind, hits and source lines of each kind of finding in a sanitizer's output."""
    heads = list(HEAD.finditer(text))
    found: dict[str, tuple[int, set[int]]] = {}
    ends = [*(head.start() for head in heads), len(text)][1:]
    for head, end in zip(heads, ends, strict=True):
        report = text[head.start() : end].partition("========= \n")[0]
        kind = re.sub(r" (at \S+\+0x|at 0x|between ).*", "", head[1]).strip(" .:")
        hits, lines = found.get(kind, (0, set()))
        found[kind] = (hits + 1, lines | set(map(int, LINE.findall(report))))
    return [(kind, hits, sorted(lines)) for kind, (hits, lines) in sorted(found.items())]


# ---------------------------------------------------------------------------------------------- provenance


def provenance(folder: Path, nvrtc: str) -> dict[str, str]:
    """Where and how the records came about."""
    versions = {"NVRTC": nvrtc}
    for program in ("ncu", "compute-sanitizer"):
        if shutil.which(program):
            match = re.search(r"Version (\S+)", output([program, "--version"]))
            versions[program] = match[1] if match else "of unknown version"
    return records.provenance(f"python benchmarks/record_gallery.py {folder.as_posix()}", **versions)


def output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    typer.run(main)
