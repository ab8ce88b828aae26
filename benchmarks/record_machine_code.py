"""Record what Nsight Compute counts of the machine code of the gallery's kernels and the ladders' rungs.

usage, on a machine with a GPU, CuPy and ncu: python benchmarks/record_machine_code.py data/h200
Writes data/h200/machine_code/counters.csv, one row per launch, and counters.json with its provenance. The
launches are the clean ones of tests/gallery, those of benchmarks/record_counters.py, and the reductions.

Each kernel is compiled as labkit compiles it for a GPU: by the NVRTC installed here, with -lineinfo and
NVRTC's defaults. `code` is the start of the SHA-256 of the kernel's machine code, to tell whether another
NVRTC makes the same. All launches are recorded twice; `varies` names the metrics that differed then.
A metric that is 0 for every launch has no column: `zero` in counters.json names them.
"""

import csv
import hashlib
import json
import re
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path[:0] = [str(Path(__file__).parent)]

import record_counters  # noqa: E402
import record_gallery  # noqa: E402
from gallery import cases  # noqa: E402
from record_gallery import architecture, built, count, driving, number, output, place, say  # noqa: E402

from labkit import kernels, records  # noqa: E402
from labkit.kernels.problem import problem  # noqa: E402
from labkit.ladder import running  # noqa: E402

ROUNDS = 2
# Names of metrics, without .sum, that are recorded where ncu has them for this GPU. ncu counts the first
# group in hardware; for the second it adds instructions to the kernel in a run of its own.
GROUPS = {
    "hardware": (
        r"smsp__(thread_)?inst_executed",
        r"smsp__thread_inst_executed_pred_on",
        r"smsp__inst_issued",
        r"sm__inst_executed_pipe_\w+",
        r"smsp__inst_executed_op_\w+",
        r"l1tex__data_pipe_lsu_wavefronts(_mem_\w+)?",
        r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared\w*",
        r"l1tex__t_requests_pipe_lsu_mem_\w+",
    ),
    "patched": (
        r"smsp__sass_inst_executed(_op_\w+)?",
        r"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared\w*",
    ),
}
REDUCED = [(1000,), (70001,)]  # elements


@dataclass(frozen=True)
class Rung:
    """A launch of a ladder's rung, with what record_gallery needs of a case of the gallery."""

    case: running.Case
    family = "ladder"
    name_expressions = ()
    shared_mem = 0

    @property
    def name(self) -> str:
        """The kernel, its macros, the sizes and the type, in a form that a file's name may have."""
        given = [f"{macro}={value}" for macro, value in self.case.macros]
        sizes = "x".join(map(str, self.case.problem.sizes.values()))
        return "-".join([self.case.kernel.replace("/", "-"), *given, sizes, self.case.problem.dtype])

    @property
    def entry(self) -> str:
        """The kernel's name: that of its family."""
        return self.case.family

    @cached_property
    def _module(self) -> Any:
        """The kernel as labkit.kernels.load compiles it for the device here."""
        return self.case.compiled()[0].module

    @property
    def source(self) -> str:
        """CUDA C++."""
        return self._module.code

    @property
    def options(self) -> tuple[str, ...]:
        """NVRTC's options."""
        return self._module.options

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks in x, y and z."""
        return kernels.launch(self.case.kernel, self.case.problem, **dict(self.case.macros))[0]

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a block in x, y and z."""
        return kernels.launch(self.case.kernel, self.case.problem, **dict(self.case.macros))[1]

    def args(self, empty: object = None) -> dict[str, Any]:
        """Fresh arguments by name, in order."""
        args = self.case.problem.args(np)
        return {f"{place}": arg for place, arg in enumerate(args)}

    def named(self, role: str) -> tuple[str, ...]:
        """Names of the arrays with this role: only `out` is asked for."""
        return (str(list(self.case.problem.arrays).index(self.case.problem.output_name)),)


def rungs() -> Iterator[Rung]:
    """Every rung at small sizes."""
    for each in record_counters.small():
        yield Rung(each)
    for rung in running.rungs("reduction"):
        for size in REDUCED:
            yield Rung(running.case(rung, problem("reduction", *size)))


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    match: Annotated[str, typer.Option(help="a regular expression for the names of launches")] = "",
    only: Annotated[list[str] | None, typer.Option(help=f"some of {', '.join(GROUPS)}")] = None,
    compiled: Annotated[Path | None, typer.Option(help="kernels that --compile-only left here")] = None,
    compile_only: Annotated[bool, typer.Option(help="fill --compiled for an H200; needs no GPU")] = False,
    drive: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Record the counters; or, with --drive, launch what a plan says."""
    if drive is not None:
        record_gallery.launch(drive, rungs())
        return
    start = time.perf_counter()
    every = [each for each in [*cases("clean"), *rungs()] if re.search(match, each.name)]
    with tempfile.TemporaryDirectory() as scratch:
        work = compiled or Path(scratch)
        work.mkdir(exist_ok=True)
        every = built(every, work, "sm_90" if compile_only else architecture())
        say(start, f"{len(every)} launches compiled")
        if compile_only:
            return
        table, listed = Table(every, work), output(["ncu", "--query-metrics"])
        place_of_table = folder / "machine_code"
        place_of_table.mkdir(parents=True, exist_ok=True)
        for _ in range(ROUNDS):
            for group in only or GROUPS:
                metrics = known(GROUPS[group], listed)
                table.add(metrics, work)
                table.write(place_of_table / "counters.csv")
                say(start, f"{len(metrics)} metrics: {group}")
        origin = provenance(folder, compiled, (work / "nvrtc").read_text())
    origin |= {"zero": ", ".join(table.zero())}
    (place_of_table / "counters.json").write_text(json.dumps(origin, indent=2) + "\n")
    say(start, f"{len(every)} launches -> {place_of_table}")


def known(wanted: tuple[str, ...], listed: str) -> list[str]:
    """The metrics, in full, that ncu lists for this GPU."""
    pattern = re.compile("|".join(wanted))
    names = (line.split()[0] for line in listed.splitlines() if line.strip())
    return sorted({f"{name}.sum" for name in names if pattern.fullmatch(name)})


class Table:
    """The counts of each launch, of one recording after the other."""

    def __init__(self, launches: list[Any], work: Path) -> None:
        self.launches = launches
        self.codes = [code(place(each, work)) for each in launches]
        self.counts: list[dict[str, str]] = [{} for _ in launches]
        self.varies: list[set[str]] = [set() for _ in launches]

    def add(self, metrics: list[str], work: Path) -> None:
        """Record these metrics; those that were recorded before are compared."""
        command = driving(work, self.launches, "machine_code", program=__file__)
        found = count(command, metrics, {each.entry for each in self.launches})
        if len(found) != len(self.launches):
            print(f"ncu counted {len(found)} of {len(self.launches)} launches", flush=True)
        rows = zip(self.launches, self.counts, self.varies, found, strict=False)
        for each, counts, varies, row in rows:
            if each.entry.partition("<")[0] not in row["Kernel Name"]:
                raise SystemExit(f"{each.name} is out of step: ncu counted {row['Kernel Name']}")
            for metric in metrics:
                value = number(row.get(metric) or "")
                if counts.setdefault(metric, value) != value:
                    varies.add(metric)

    def zero(self) -> list[str]:
        """The metrics that are 0 for every launch: they have no column."""
        return [metric for metric in self.counts[0] if {each.get(metric) for each in self.counts} == {"0"}]

    def write(self, path: Path) -> None:
        """Write what was recorded so far."""
        metrics = [metric for metric in self.counts[0] if metric not in self.zero()]
        place = ("set", "launch", "kernel", "dtype", "size", "macros", "grid", "block", "code", "varies")
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*place, *metrics], "", "ignore", lineterminator="\n")
            writer.writeheader()
            for each, digest, counts, varies in zip(
                self.launches, self.codes, self.counts, self.varies, strict=True
            ):
                row = {"set": each.family.replace("clean", "gallery"), "launch": each.name, "code": digest}
                row |= {"grid": shape(each.grid), "block": shape(each.block)}
                row |= {"varies": " ".join(sorted(varies))}
                writer.writerow(row | of_rung(each) | counts)


def of_rung(launch: Any) -> dict[str, str]:
    """Which rung it is, on what and with which macros; nothing for a case of the gallery."""
    if not isinstance(launch, Rung):
        return {}
    case = launch.case
    return {
        "kernel": case.kernel,
        "dtype": case.problem.dtype,
        "size": " ".join(f"{name.lower()}={size}" for name, size in case.problem.sizes.items()),
        "macros": " ".join(f"{name}={value}" for name, value in case.macros),
    }


def shape(sizes: tuple[int, ...]) -> str:
    """Return three sizes as 8x8x1."""
    return "x".join(map(str, [*sizes, 1, 1][:3]))


def code(cubin: Path) -> str:
    """Return the start of the SHA-256 of the section with the kernel's machine code."""
    data, entry = cubin.read_bytes(), cubin.with_suffix(".entry").read_text()
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, sections, names_at = struct.unpack_from("<HHH", data, 0x3A)
    # name, type, flags, address, offset and size of each section
    heads = [struct.unpack_from("<IIQQQQ", data, start + size * each) for each in range(sections)]
    for name, _, _, _, offset, length in heads:
        begin = heads[names_at][4] + name
        if data[begin : data.index(b"\0", begin)] == f".text.{entry}".encode():
            return hashlib.sha256(data[offset : offset + length]).hexdigest()[:16]
    raise SystemExit(f"{cubin.name} has no machine code of {entry}")


def provenance(folder: Path, compiled: Path | None, nvrtc: str) -> dict[str, str]:
    """Where and how the records came about."""
    version = output(["ncu", "--version"]).split("Version ")[1].split()[0]
    command = f"python benchmarks/record_machine_code.py {folder.as_posix()}"
    command += f" --compiled {compiled.name}" if compiled else ""
    return records.provenance(command, NVRTC=nvrtc, ncu=version)


if __name__ == "__main__":
    typer.run(main)
