"""Record on a GPU how long the kernels without names of notebook 09 take, before and after their fixes.

usage, on a machine with a GPU and CuPy: python benchmarks/record_unnamed.py data/h200
Writes data/h200/unnamed/times.csv, with its provenance in times.json. A fixed kernel is the solved notebook's
answer. `--gather launches.json` writes the launches to a file, and `--launches launches.json` reads them from
one, where the GPU's machine has no notebooks.
"""

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

if TYPE_CHECKING:
    from labkit.devices.timing import Timing

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

NOTEBOOK = ROOT / "notebooks" / "solutions" / "09_name_the_limit.ipynb"
COLUMNS = ("kernel", "version", "median_ms", "p20_ms", "p80_ms", "clock_mhz", "samples")
SECONDS = 0.3  # to measure each launch for


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    gather: Annotated[Path | None, typer.Option(help="write the launches here; needs no GPU")] = None,
    launches: Annotated[Path | None, typer.Option(help="launches that --gather left")] = None,
) -> None:
    """Record the times."""
    found = gathered() if launches is None else json.loads(launches.read_text())
    if gather:
        gather.write_text(json.dumps(found))
        return
    from labkit import records

    table = folder / "unnamed" / "times.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for each in found:
            timing = time(each)
            figures = (f"{figure:.6g}" for figure in (timing.median, timing.p20, timing.p80))
            row = [each["kernel"], each["version"], *figures, timing.clock_mhz or "", len(timing.samples)]
            writer.writerow(row)
            print(*row, flush=True)
    command = f"python benchmarks/record_unnamed.py {folder.as_posix()}"
    command += f" --launches {launches.name}" if launches else ""
    told = records.provenance(command, NVRTC=nvrtc())
    table.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n")


def nvrtc() -> str:
    """Return the version of the compiler that CuPy uses."""
    import cupy

    return "{}.{}".format(*cupy.cuda.nvrtc.getVersion())


def gathered() -> list[dict[str, Any]]:
    """Return the launches: kernel, version, code, grid, block, the arrays' shapes, and the sizes."""
    import nbformat

    from labkit.course.mystery_kernels import FIRST, cases
    from labkit.course.notebooks.release import solution

    answers = {
        cell.metadata.labkit.exercise: solution(cell.source).partition("\n")[2]
        for cell in nbformat.read(NOTEBOOK, 4).cells
        if cell.metadata.get("labkit", {}).get("role") == "answer"
    }
    found = []
    for number, (letter, case) in enumerate(cases().items(), FIRST):
        grid, block, args = case.launch()
        fixed = answers.get(f"09.{number}")
        for version, code in (("before", case.source), ("after", fixed)):
            if code:
                shapes = [list(arg.shape) for arg in args if isinstance(arg, np.ndarray) and arg.ndim]
                sizes = [int(arg) for arg in args[len(shapes) :]]
                told = {"kernel": letter, "version": version, "code": code, "grid": grid, "block": block}
                found.append(told | {"shapes": shapes, "sizes": sizes})
    return found


def time(each: dict[str, Any]) -> "Timing":
    """Time a launch on this machine's GPU; its inputs are random."""
    import cupy

    from labkit.devices.timing import time_kernel

    module = cupy.RawModule(code=each["code"], options=("-lineinfo",))
    kernel = module.get_function(each["kernel"].lower())
    cupy.random.seed(0)
    arrays = [cupy.random.random(shape, dtype="float32") for shape in each["shapes"]]
    args = (*arrays, *map(np.int32, each["sizes"]))
    cupy.get_default_memory_pool().free_all_blocks()  # of the launch before
    return time_kernel(lambda: kernel(tuple(each["grid"]), tuple(each["block"]), args), seconds=SECONDS)


if __name__ == "__main__":
    typer.run(main)
