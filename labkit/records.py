"""The numbers under data/: the tables of five course reports, and recorded runs with their provenance.

One row a value, in the columns of COLUMNS. What a report leaves open is "" (text) or missing (numbers).
data/SOURCES.md says what each report measured, what each column means and how misprints are marked.
"""

import json
from functools import cache
from pathlib import Path

import pandas as pd

COLUMNS = (
    *("report", "machine", "problem", "kernel", "dtype"),
    *("m", "n", "k", "rows", "cols", "block_x", "block_y", "tile"),
    *("quantity", "unit", "value", "note"),
)
_INTEGERS = ("m", "n", "k", "rows", "cols", "block_x", "block_y", "tile")
_PROVENANCE = ("gpu", "driver", "versions", "date", "command")

_REPORTS = {
    "int-matmul": "int32 matrix product, naive and tiled, N 256 to 4096, blocks of 1×1 to 32×32 (nvprof)",
    "cublas-gap": "float32 matrix product against cuBLAS and stated peaks, N = 680",
    "tiled-matmul-ko": "float32 matrix product, tiles of 4 to 32, small, medium and large matrices",
    "cpu-gpu-matmul": "float32 matrix product: CPU loops, AVX, cache blocks; GPU kernels, copies, allocation",
    "int-transpose": "int32 transpose of 2048×2048 in five steps, CPU to unrolled (GeForce GTX 770M)",
}

_PACKAGE = Path(__file__).parent
# A wheel carries data/ inside the package; a checkout has it beside the package.
_DATA = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parent / "data"


def reports() -> dict[str, str]:
    "The reports' ids, each with a line on what it measured."
    return dict(_REPORTS)


def load(report: str | None = None, quantity: str | None = None, **filters: object) -> pd.DataFrame:
    """Rows of the reports' tables: COLUMNS plus `source`, a label that says where a row comes from.

    Keywords are columns; a keyword's value is one value or a list of them, and "" selects empty cells:

        load("int-matmul", "time", kernel=["naive", "tiled"], block_x=32)

    Raises ValueError, with the valid names, for an unknown column or a value that no row left so far has.
    """
    frame = pd.concat([_read(_DATA / "reports" / f"{name}.csv") for name in _REPORTS], ignore_index=True)
    frame["source"] = [
        _report_label(*row) for row in zip(frame.report, frame.machine, frame.kernel, strict=True)
    ]
    wanted = {"report": report, "quantity": quantity, **filters}
    return _select(frame, {column: value for column, value in wanted.items() if value is not None})


def recorded(machine: str) -> pd.DataFrame:
    """Runs recorded on a machine, data/<machine>/*.csv: COLUMNS plus `source`, the GPU and the date.

    Beside each table lies a JSON file of the same name: gpu, driver, versions, date and command of the run.
    Raises ValueError for a machine without records, and for a table without its provenance.
    """
    tables = sorted((_DATA / machine).glob("*.csv"))
    if not tables:
        machines = sorted({path.parent.name for path in _DATA.glob("*/*.csv")} - {"reports"})
        raise ValueError(f"no runs recorded on {machine!r}; machines with records: {_listed(machines)}")
    return pd.concat([_read(table).assign(source=_run_label(table)) for table in tables], ignore_index=True)


@cache
def _read(path: Path) -> pd.DataFrame:
    "One CSV file, checked against COLUMNS; callers must not change what they get."
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; reinstall labkit, or restore data/ from git") from None
    if tuple(frame.columns) != COLUMNS:
        missing, extra = set(COLUMNS) - set(frame.columns), set(frame.columns) - set(COLUMNS)
        raise ValueError(
            f"{path}: columns must be {', '.join(COLUMNS)}, in this order"
            f" (missing: {_listed(sorted(missing))}; not known: {_listed(sorted(extra))})"
        )
    for column in (*_INTEGERS, "value"):
        frame[column] = _numbers(frame[column], path)
    return frame


def _numbers(texts: pd.Series, path: Path) -> pd.Series:
    "Text to numbers; an empty cell becomes a missing value."
    numbers = pd.to_numeric(texts, errors="coerce")
    bad = texts[numbers.isna() & (texts != "")]
    if len(bad):
        # Line 1 is the header, and rows count from 0.
        raise ValueError(f"{path}, line {bad.index[0] + 2}: {texts.name} {bad.iloc[0]!r} is not a number")
    return numbers.astype("float64" if texts.name == "value" else "Int64")


def _select(frame: pd.DataFrame, wanted: dict[str, object]) -> pd.DataFrame:
    chosen = ""
    for column, value in wanted.items():
        if column not in frame.columns:
            raise ValueError(f"no column {column!r}; columns: {', '.join(frame.columns)}")
        cells = frame[column].astype(object).where(frame[column].notna(), "")
        values = value if isinstance(value, list | tuple) else [value]
        unknown = [one for one in values if one not in set(cells)]
        if unknown:
            valid = _listed(sorted(set(cells), key=lambda cell: (isinstance(cell, str), cell)))
            raise ValueError(f"no record has {column}={unknown[0]!r}{chosen}; {column} is one of: {valid}")
        frame = frame[cells.isin(list(values))]
        chosen += f"{',' if chosen else ' where'} {column}={value!r}"
    return frame.reset_index(drop=True)


def _report_label(report: str, machine: str, kernel: str) -> str:
    return f"report {report}, {machine or ('CPU' if kernel.startswith('cpu') else 'GPU') + ' not stated'}"


def _run_label(table: Path) -> str:
    path = table.with_suffix(".json")
    if not path.is_file():
        raise ValueError(
            f"{table.name} has no provenance: {path} is missing (keys: {', '.join(_PROVENANCE)})"
        )
    run = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in _PROVENANCE if key not in run]
    if missing:
        raise ValueError(f"{path} does not say: {', '.join(missing)}")
    return f"recorded: {run['gpu']}, {run['date']}"


def _listed(values: list) -> str:
    return ", ".join("(empty)" if value == "" else str(value) for value in values) or "none"
