"""Tables of figures: one value per row, in the same columns for all families, here and in files.

A file has one column `size`, such as "m=1024 n=1024 k=1024". A frame has a column for each of these sizes:
those in INTEGERS always, and others where a family of kernels has them.
"""

import csv
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

_SIZES = ("m", "n", "k", "rows", "cols")
_PLACES = ("block_x", "block_y", "tile")
_WHAT, _VALUE = ("report", "machine", "problem", "kernel", "dtype"), ("quantity", "unit", "value", "note")
COLUMNS = (*_WHAT, *_SIZES, *_PLACES, *_VALUE)
INTEGERS = (*_SIZES, *_PLACES)
FILE_COLUMNS = (*_WHAT, "size", *_PLACES, *_VALUE)
HEADER = ",".join(FILE_COLUMNS) + "\n"
_SIZE = re.compile(r"\w+=\S*")


def frame_of(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Make a table like that of `records.load` from rows by column name. Other names are sizes, too."""
    listed = list(rows)
    others = sorted({name for row in listed for name in row} - {*COLUMNS, "source"})
    frame = pd.DataFrame(listed, columns=[*COLUMNS, *others, "source"])
    return frame.astype(dict.fromkeys((*INTEGERS, *others), "Int64") | {"value": "float64"})


def sizes_of(frame: pd.DataFrame) -> list[str]:
    """Return the names of a frame's size columns; a column that a student adds, such as a rate, is none."""
    own = frame.drop(columns=[*COLUMNS, "source"], errors="ignore").select_dtypes("Int64").columns
    return [str(name) for name in frame.columns if name in _SIZES or name in own]


def sides_of(frame: pd.DataFrame) -> list[str]:
    """Return these names in the order in which a size is written: M×K×N for a product."""
    first = [name for name in ("m", "k", "n") if name in frame.columns]
    return first + [name for name in sizes_of(frame) if name not in first]


def text_of(frame: pd.DataFrame, digits: str | None = None) -> str:
    """Write a frame's rows as the lines of a file; `digits` such as "%.6g" rounds the figures."""
    sizes = sizes_of(frame)
    written = frame.assign(size=[_size_text(row) for row in frame[sizes].to_dict("records")])
    return written[[*FILE_COLUMNS]].to_csv(
        header=False, index=False, lineterminator="\n", float_format=digits
    )


def write(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame as a file."""
    path.write_text(HEADER + text_of(frame), encoding="utf-8", newline="")


def read(path: Path) -> pd.DataFrame:
    """Read a CSV file. Raises ValueError for other columns, a line that is cut off, or text for a number."""
    try:
        frame = _cells(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; reinstall labkit, or restore data/ from git") from None
    sizes = pd.DataFrame(
        [_sizes(text, f"{path}, line {line}") for line, text in frame["size"].items()], index=frame.index
    ).fillna("")
    others = sorted(set(sizes.columns) - set(_SIZES))
    frame = frame.drop(columns="size").join(sizes.reindex(columns=[*_SIZES, *others], fill_value=""))
    for column in (*INTEGERS, *others, "value"):
        frame[column] = _numbers(frame[column], path)
    return frame[[*COLUMNS, *others]].reset_index(drop=True)


def _cells(path: Path) -> pd.DataFrame:
    """Return the cells of a file as text. Each row's index is the number of its line, as in an editor."""
    rows: dict[int, list[str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        columns = next(lines, [])
        if tuple(columns) != FILE_COLUMNS:
            missing, extra = set(FILE_COLUMNS) - set(columns), set(columns) - set(FILE_COLUMNS)
            raise ValueError(
                f"{path}: columns must be {', '.join(FILE_COLUMNS)}, in this order"
                f" (missing: {listed(sorted(missing))}; not known: {listed(sorted(extra))})"
            )
        line = lines.line_num + 1
        for cells in lines:
            if cells and len(cells) != len(columns):
                raise ValueError(f"{path}, line {line}: {len(cells)} cells; there are {len(columns)} columns")
            rows |= {line: cells} if cells else {}
            line = lines.line_num + 1
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=columns, dtype=str)


def _sizes(text: str, where: str) -> dict[str, str]:
    """Return the sizes of a cell, as text: "m=32 n=64" is m: 32, n: 64."""
    if not all(map(_SIZE.fullmatch, text.split())):
        raise ValueError(f"{where}: size {text!r} is not written as in 'm=32 n=64'")
    return dict(each.partition("=")[::2] for each in text.split())


def _size_text(sizes: Mapping[Hashable, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items() if pd.notna(value))


def _numbers(texts: pd.Series, path: Path) -> pd.Series:
    """Convert text to numbers; an empty cell becomes a missing value."""
    numbers, is_whole = pd.to_numeric(texts, errors="coerce"), texts.name != "value"
    bad = texts[(texts != "") & (numbers % 1 != 0 if is_whole else numbers.isna())]
    if len(bad):
        kind = "whole number" if is_whole else "number"
        raise ValueError(f"{path}, line {bad.index[0]}: {texts.name} {bad.iloc[0]!r} is not a {kind}")
    return numbers.astype("Int64" if is_whole else "float64")


def select(frame: pd.DataFrame, wanted: dict[str, object]) -> pd.DataFrame:
    """Keep the rows with the wanted values; None: any."""
    chosen = ""
    for column, value in wanted.items():
        if value is None:
            continue
        if column not in frame.columns:
            raise ValueError(f"no column {column!r}; columns: {', '.join(frame.columns)}")
        cells = frame[column].astype(object).where(frame[column].notna(), "")
        values = value if isinstance(value, list | tuple) else [value]
        unknown = [one for one in values if one not in set(cells)]
        if unknown:
            valid = listed(sorted(set(cells), key=lambda cell: (isinstance(cell, str), cell)))
            raise ValueError(f"no record has {column}={unknown[0]!r}{chosen}; {column} is one of: {valid}")
        frame = frame[cells.isin(list(values))]
        chosen += f"{',' if chosen else ' where'} {column}={value!r}"
    return frame.reset_index(drop=True)


def listed(values: list) -> str:
    """Join values as a message lists them."""
    return ", ".join("(empty)" if value == "" else str(value) for value in values) or "none"
