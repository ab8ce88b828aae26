"""The numbers under data/: the tables of five course reports, and runs recorded on a GPU.

There is one value per row, in the columns of COLUMNS. What a report does not state is "" (text) or missing
(numbers). data/SOURCES.md says what each report measured, what each column means and how misprints are
marked.
"""

import json
from functools import cache
from pathlib import Path

import pandas as pd

from labkit.paths import shipped
from labkit.records.provenance import provenance_of
from labkit.records.tables import COLUMNS, listed, read, select, sides_of

_REPORTS = {
    "int-matmul": "int32 matrix product, naive and tiled, N 256 to 4096, blocks of 1×1 to 32×32 (nvprof)",
    "cublas-gap": "float32 matrix product against cuBLAS and stated peaks, N = 680",
    "tiled-matmul-ko": "float32 matrix product, tiles of 4 to 32, small, medium and large matrices",
    "cpu-gpu-matmul": "float32 matrix product: CPU loops, AVX, cache blocks; GPU kernels, copies, allocation",
    "int-transpose": "int32 transpose of 2048×2048 in five steps, CPU to unrolled (GeForce GTX 770M)",
}

# Per report: the figures that a run on a GPU also has, and what varies along the columns of its tables.
_TABLES: dict[str, tuple[dict[str, list[str]], str]] = {
    "int-matmul": ({"quantity": ["time"]}, "size"),
    "cublas-gap": ({"quantity": ["time", "performance"]}, "quantity"),
    "tiled-matmul-ko": ({"quantity": ["time"]}, "size"),
    "cpu-gpu-matmul": (
        {"quantity": ["time", "htod_time", "dtoh_time", "malloc_time"], "kernel": ["naive", "tiled"]},
        "size",
    ),
    "int-transpose": ({"quantity": ["time", "bandwidth", "step_speedup", "speedup_over_cpu"]}, "quantity"),
}
REPORT_TIME = "report_time"  # what a run calls the time as int-transpose takes it: 100 launches and copies
_ONCE = ("htod_time", "dtoh_time", "malloc_time")  # does not depend on the kernel and its block
LIMITS = "limits.csv"  # what `labkit bench --limits` measured: a table of another kind
PINNED = "pinned"  # note of a copy from or to page-locked memory, which no report used

_DATA = shipped("data")


def reports() -> dict[str, str]:
    """Return the reports' ids, each with a line on what it measured."""
    return dict(_REPORTS)


def load(report: str | None = None, quantity: object = None, **filters: object) -> pd.DataFrame:
    """Return rows of the reports' tables: COLUMNS plus `source`, a label that says where a row comes from.

    Keywords are columns; a keyword's value is one value or a list of them, and "" selects empty cells:

        load("int-matmul", "time", kernel=["naive", "tiled"], block_x=32)

    Raises ValueError, with the valid names, for an unknown column or a value that no remaining row has.
    """
    frame = pd.concat([_kept(_DATA / "reports" / f"{name}.csv") for name in _REPORTS], ignore_index=True)
    frame["source"] = [
        _report_label(*row) for row in zip(frame.report, frame.machine, frame.kernel, strict=True)
    ]
    return select(frame, {"report": report, "quantity": quantity, **filters})


def recorded(machine: str | Path, quantity: object = None, **filters: object) -> pd.DataFrame:
    """Return runs recorded on a machine: COLUMNS plus `source`, the GPU and the date.

    `machine` is a folder of data/, such as "h200", or the path of one that `labkit bench` has filled. Filters
    are those of `load`. Beside each table lies a JSON file of the same name: gpu, driver, versions, date and
    command of the run. Raises ValueError for a machine without records, and for a table without provenance.
    """
    ours = _DATA / machine
    folder = ours if ours.is_dir() else Path(machine)
    tables = sorted(path for path in folder.glob("*.csv") if path.name != LIMITS)
    if not tables:
        machines = sorted({path.parent.name for path in _DATA.glob("*/*.csv")} - {"reports"})
        raise ValueError(f"no runs recorded on {str(machine)!r}; machines with records: {listed(machines)}")
    is_ours = tables[0].parent.parent == _DATA
    reader = _kept if is_ours else read  # a user's own run may still be growing while it is read
    runs = [reader(table).assign(source=_run_label(table)) for table in tables]
    return select(pd.concat(runs, ignore_index=True), {"quantity": quantity, **filters})


def limits(machine: str | Path = "h200") -> pd.DataFrame:
    """Return what `labkit bench --limits` measured on a machine: quantity, variant, unit, value and source.

    `machine` is a folder of data/, or the path of one that was filled with it. labkit/ladder/limits says what
    the quantities are. Raises ValueError for a machine without this table.
    """
    ours = _DATA / machine
    table = (ours if ours.is_dir() else Path(machine)) / LIMITS
    if not table.exists():
        raise ValueError(f"there is no {table}: `labkit bench {machine} --limits` writes it, on a GPU.")
    return pd.read_csv(table).assign(source=_run_label(table))


def sanitizer(machine: str = "h200") -> pd.DataFrame:
    """Return what compute-sanitizer reported on a machine for the faulty kernels of tests/gallery/bugs.

    There is one row per kernel, tool and kind of finding; `kind` is "" where the tool found nothing. `lines`
    are the kernel's lines that the tool named, and `source` is the GPU, the tool's version and the date.
    """
    folder = _DATA / machine / "gallery"
    run = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    version = next(part for part in run["versions"].split(", ") if part.startswith("compute-sanitizer"))
    frame = pd.read_csv(folder / "sanitizer.csv", dtype=str, keep_default_na=False)
    return frame.assign(source=f"recorded: {run['gpu']}, {version}, {run['date']}")


def counterparts(report: str, machine: str | Path = "h200", **filters: object) -> pd.DataFrame:
    """Return another machine's figures for a report's tables: COLUMNS plus `source`, in the report's order.

    They are for the same kernel, dtype, size and block; for cublas-gap, every kernel of its size. Copies and
    allocation depend only on the size and are repeated for each block. A `time` of int-transpose covers 100
    launches and the copies, as there, but GB are 10^9 bytes. Filters are those of `load`.
    """
    printed, runs = _placed(_tables(report)), _placed(recorded(machine))
    if report == "int-transpose":
        runs = runs[runs.quantity != "time"].replace({"quantity": {REPORT_TIME: "time"}})
    runs = runs[runs.quantity.isin(printed.quantity) & (runs.note != PINNED)]
    once, each_block = runs.quantity.isin(_ONCE), ["kernel", "block", "block_x", "block_y", "tile"]
    same = ["problem", "dtype", "size"]
    times = printed[same if report == "cublas-gap" else [*same, "kernel", "block"]].drop_duplicates()
    copies = printed[[*same, *each_block, "quantity"]]
    found = pd.concat([times.merge(runs[~once]), copies.merge(runs[once].drop(columns=each_block))])
    found = found[[*COLUMNS, "source"]]
    return select(_with_rates(found) if report == "cublas-gap" else found, filters)


def beside(report: str, folder: str | Path | None = None) -> pd.DataFrame:
    """Return a report's tables beside the figures of an H200 and, if given, of the runs in `folder`.

    Rows are kernels and blocks; columns are sizes (for cublas-gap and int-transpose: quantities), and under
    each "report", "H200" and "this machine". Times are in ms. `counterparts` says which figures are compared.
    """
    sets = {"report": _tables(report), "H200": counterparts(report)}
    if folder is not None:
        sets["this machine"] = counterparts(report, folder)
    quantities, across = _TABLES[report][0]["quantity"], _TABLES[report][1]
    down = (["quantity"] if across != "quantity" and len(quantities) > 1 else []) + ["kernel", "block"]
    figures = pd.concat(
        {name: _placed(data).set_index([*down, across]).value for name, data in sets.items()}, axis=1
    )
    columns = [(column, name) for column in figures.index.unique(across) for name in sets]
    rows = pd.MultiIndex.from_frame(figures.reset_index()[down]).unique()
    table = pd.DataFrame(figures.unstack(across)).swaplevel(axis="columns")
    return table.reindex(rows).reindex(columns=columns)


@cache
def _kept(path: Path) -> pd.DataFrame:
    """Return a table that does not change, read once; callers must not modify it."""
    return read(path)


def _tables(report: str) -> pd.DataFrame:
    """Return those figures of a report's tables that a run on a GPU also has."""
    return load(report, **(_TABLES[report][0] if report in _TABLES else {}))


def _placed(data: pd.DataFrame) -> pd.DataFrame:
    """Add the columns `block`, such as 32×32, and `size`, such as 256 or 4096×2048×4096 (m×k×n)."""
    blocks = ["×".join(row) for row in _texts(data[["block_x", "block_y"]])]
    sizes = [row[0] if len(set(row)) == 1 else "×".join(row) for row in _texts(data[sides_of(data)])]
    return data.assign(block=blocks, size=sizes)


def _texts(data: pd.DataFrame) -> list[list[str]]:
    """Return the cells of each row as text, without those that are missing."""
    return [[str(cell) for cell in row if pd.notna(cell)] for row in data.itertuples(index=False)]


def _with_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """Add to each time of a matrix product its rate, for 2 m n k operations."""
    operations = 2.0 * (runs.m * runs.n * runs.k).astype("float64")
    rates = operations / runs.value / 1e6
    return pd.concat([runs, runs.assign(quantity="performance", unit="GFLOP/s", value=rates)])


def _report_label(report: str, machine: str, kernel: str) -> str:
    return f"report {report}, {machine or ('CPU' if kernel.startswith('cpu') else 'GPU') + ' not stated'}"


def _run_label(table: Path) -> str:
    run = provenance_of(table)
    return f"recorded: {run.get('processor') or run['gpu']}, {run['date']}"
