"""What the solved notebooks take: seconds with a cold and with a warm cache, size, cells and their lengths.

    python benchmarks/notebooks.py [03 04 ...]

Each runs as `labkit run` runs it, in a process of its own on the device of the environment (else the
simulator), first with an empty cache (LABKIT_CACHE in a temporary folder), then with what that run has left.
Lengths are those of the students' versions.
"""

import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from unittest import mock

os.environ.setdefault("LABKIT_DEVICE", "simt")

import nbformat
import pandas as pd

from labkit.course.notebooks import catalog, release
from labkit.course.notebooks.run import OK, run_one

SOLVED = Path(__file__).parent.parent / "notebooks" / release.SOLUTIONS
LONGEST = 30  # seconds with a cold cache


def row(notebook: Path) -> dict[str, object]:
    """What one notebook takes."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        with mock.patch.dict(os.environ, LABKIT_CACHE=str(Path(folder, "cache"))):
            cold, warm = (run_one(notebook, page, lambda *_: None) for _ in range(2))
    wrong = [outcome.result for outcome in (cold, warm) if outcome.result != OK]
    for failure in (*cold.failures, *warm.failures):
        print(f"{notebook.stem}: {failure}", file=sys.stderr)
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    lines = [len(release.without_solution(cell.source).splitlines()) for cell in cells]
    return {
        "notebook": notebook.stem,
        "cold s": cold.seconds,
        "warm s": warm.seconds,
        "MB": notebook.stat().st_size / 1e6,
        "code cells": len(cells),
        "median lines": median(lines),
        "longest": max(lines),
        "result": wrong[0] if wrong else OK if cold.seconds < LONGEST else f"over {LONGEST} s",
    }


if __name__ == "__main__":
    chosen = catalog.find(sys.argv[1:], SOLVED) or catalog.notebooks(SOLVED)
    table = pd.DataFrame(map(row, chosen)).set_index("notebook")
    total = table[["cold s", "warm s", "MB", "code cells"]].sum()
    table.loc["all"] = {
        **total,
        "median lines": table["median lines"].median(),
        "longest": table.longest.max(),
    }
    print(table.fillna("").to_string(float_format=lambda value: f"{value:.3g}"))
