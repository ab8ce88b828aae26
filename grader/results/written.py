"""Read a table that an instructor writes, as a spreadsheet saves it: UTF-8, with commas, semicolons or tabs.

What is wrong is told with its line and column, all at once, so that nothing is skipped in silence.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

MOST_TOLD = 20  # mistakes


class WrongTable(ValueError):
    """A table cannot be taken; the message names each line and column that is wrong."""

    def __init__(self, path: Path, wrong: Sequence[str]) -> None:
        more = len(wrong) - MOST_TOLD
        told = [*wrong[:MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
        super().__init__("\n".join([f"{path} cannot be taken as it is:", *(f"  {each}" for each in told)]))
        self.wrong = tuple(wrong)


@dataclass(frozen=True)
class Row:
    """A row of a table: its first and last line in the file, and its cells by column, stripped."""

    line: int
    last: int
    cells: Mapping[str, str]


def rows(path: Path, required: Sequence[str]) -> list[Row]:
    """Return the rows of a table that has the columns `required` and maybe others; empty ones are left out.

    Names of columns are taken in small letters. Raises WrongTable.
    """
    lines = _lines(path)
    if not lines:
        raise WrongTable(path, [f"line 1: it is empty; its columns are {', '.join(required)}"])
    (number, _, header), *rest = lines
    columns = [name.strip().lower() for name in header]
    wrong = [f"line {number}: there is no column {name!r}" for name in required if name not in columns]
    wrong += [
        f"line {number}: there are two columns {name!r}"
        for name in dict.fromkeys(columns)
        if name and columns.count(name) > 1
    ]
    if wrong:
        raise WrongTable(path, wrong)
    found = []
    for number, last, cells in rest:
        if len(cells) > len(columns) and any(map(str.strip, cells[len(columns) :])):
            wrong.append(
                f"line {number}: {len(cells)} cells, and the first line has {len(columns)}: "
                'a text that has the separator stands in "…"'
            )
        padded = [*map(str.strip, cells), *[""] * (len(columns) - len(cells))]
        found.append(Row(number, last, dict(zip(columns, padded, strict=False))))
    if wrong:
        raise WrongTable(path, wrong)
    return found


def without(path: Path, dropped: Sequence[Row]) -> str:
    """Return the text of a table without these rows; all else stays byte for byte."""
    lines = path.read_bytes().decode("utf-8").splitlines(keepends=True)
    gone = {line for row in dropped for line in range(row.line, row.last + 1)}
    return "".join(text for line, text in enumerate(lines, 1) if line not in gone)


def _lines(path: Path) -> list[tuple[int, int, list[str]]]:
    """Return each row that is not empty, with the lines on which it begins and ends."""
    data = path.read_bytes()
    if data.startswith(b"PK"):
        raise WrongTable(path, ["line 1: it is a spreadsheet, not CSV; save it as CSV UTF-8"])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WrongTable(path, [f"line {line}: it is not UTF-8; save it as CSV UTF-8"]) from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader, found, line = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True), [], 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                found.append((line, reader.line_num, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise WrongTable(path, [f"line {line}: {error}"]) from None
    return found
