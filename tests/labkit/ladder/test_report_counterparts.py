"""docs/reports.md: what it names is there, and no report is left out; curves of many sizes in one picture."""

import re
from pathlib import Path

import nbformat
import pytest

from labkit import records
from labkit.figures import curves

REPOSITORY = Path(__file__).parents[3]
TABLE = (REPOSITORY / "docs" / "reports.md").read_text(encoding="utf-8")
ROWS = [
    [part.strip() for part in line.split("|")[1:-1]] for line in TABLE.splitlines() if line.startswith("| `")
]
CELLS = {
    (path.stem, cell.id): cell
    for path in sorted((REPOSITORY / "notebooks" / "solutions").glob("*.ipynb"))
    for cell in nbformat.read(path, as_version=4).cells
}


def named(text):
    """Notebook and cell of each `notebook#cell`."""
    return re.findall(r"`([0-9R]\w*_\w+)#([\w-]+)`", text)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_every_table_and_figure_has_a_cell_that_exists(row):
    _, theirs, ours, added = row
    assert theirs and added and named(ours)
    assert set(named(ours) + named(added)) <= set(CELLS)


def test_every_report_is_there_and_no_other():
    assert {row[0].strip("`") for row in ROWS} == set(records.reports())


@pytest.mark.parametrize("report", records.reports())
def test_cells_show_the_report_and_an_h200_beside_it(report):
    sources = [CELLS[place].source for row in ROWS if row[0] == f"`{report}`" for place in named(row[2])]
    assert any(f'load("{report}"' in source or f'beside("{report}"' in source for source in sources)
    assert any(re.search(r"beside|counterparts|h200", source) for source in sources)


def test_every_kind_of_curve_is_drawn():
    """Time against block, tile and size, the improvement ratio, the steps of a ladder."""
    drawn = " ".join(CELLS[place].source for row in ROWS for place in named(row[2]))
    for kind in ("time_by_block", "time_by_tile", "time_by_size", "speedup_by_size", "transpose_steps"):
        assert f"plots.{kind}(" in drawn


def test_all_sizes_in_one_picture_are_lines_of_one_kernel():
    report = records.load("int-matmul", "time", kernel="tiled")
    h200 = records.counterparts("int-matmul", quantity="time", kernel="tiled")
    (axes,) = curves.time_by_tile(report, here=h200).axes
    sizes = [f"N = {n}" for n in (256, 512, 1024, 4096)]
    labels = axes.get_legend_handles_labels()[1]
    assert labels == [f"{size}, {whose}" for whose in ("report int-matmul", "NVIDIA H200") for size in sizes]
    assert axes.get_title(loc="left") == "tiled, best side: 32×32 at 3 of 4 sizes"
