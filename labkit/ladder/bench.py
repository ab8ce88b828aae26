"""`labkit bench`: time rungs × parameters × sizes on this machine's GPU, as a table for `records.recorded`.

The table is bench.csv in the given folder; each case adds a few rows as soon as it is measured. bench.json
records the machine and the versions. Cases already in the table are not measured again, so an interrupted run
can be continued.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from labkit import records
from labkit.kernels.problem import families, problem_class
from labkit.ladder import ceilings, matmul_reports, running, transpose_report
from labkit.ladder.running import END, Case, Row, Section, case, row_dicts
from labkit.records.tables import HEADER, text_of


@dataclass(frozen=True)
class Ceilings(Case):
    """The most this GPU can do, see `ceilings.table`."""

    def place(self) -> Row:
        """Return the columns that identify the case, with the note "ceilings"."""
        return super().place() | {"note": "ceilings"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Make one row per ceiling; `args` are not used."""
        return [*row_dicts(ceilings.table()), self.place() | {"quantity": END, "unit": "1", "value": 1}]


def _ceilings(quick: bool) -> Iterator[Case]:
    """Yield the case that measures the roofs of the roofline."""
    yield Ceilings("peak", ceilings.PLANE)


def _ladder(family: str, quick: bool) -> Iterator[Case]:
    """Yield the family's ladder on each of its problems, then the extra rungs that the family asks for."""
    kind = problem_class(family)
    for problem in kind.benchmarked(quick):
        yield from running.cases(problem)
    for rung, problem, macros in kind.benchmarked_rungs(quick):
        yield case(rung, problem, **macros)


def _sections() -> dict[str, list[Section]]:
    """Return the functions that make each section's cases: first the families', then the reports'."""
    found: dict[str, list[Section]] = {family: [partial(_ladder, family)] for family in families()}
    for module in (matmul_reports, transpose_report):
        for name, section in module.SECTIONS.items():
            found.setdefault(name, []).append(section)
    return found | {"ceilings": [_ceilings]}


SECTIONS = _sections()


def plan(quick: bool = False, only: Iterable[str] = ()) -> list[Case]:
    """Return the cases of the sections `only` (default: all), without duplicates and grouped by problem.

    `quick` leaves out large sizes. Raises ValueError for an unknown section.
    """
    if unknown := [name for name in only if name not in SECTIONS]:
        raise ValueError(f"there is no section {unknown[0]!r}. Choose from {', '.join(SECTIONS)}.")
    chosen = [makers for name, makers in SECTIONS.items() if not only or name in only]
    cases = [each for makers in chosen for make in makers for each in make(quick)]
    return sorted(
        dict.fromkeys(cases),
        key=lambda each: (each.family, each.problem.dtype, each.problem.bytes, str(each.problem)),
    )


def run(cases: Iterable[Case], folder: Path, origin: dict[str, str]) -> list[str]:
    """Measure the cases that folder/bench.csv does not have yet, with a progress bar.

    `origin` is `records.provenance` of this run. Returns one line per failed case, saying what went wrong.
    Raises ValueError if the table was measured with another GPU, driver or version.
    """
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    table, failures = folder / "bench.csv", []
    origin = _agreed(table, origin)
    done, listed = _mended(table), list(cases)
    places = _places(each.place() for each in listed)
    missing = [each for each, place in zip(listed, places, strict=True) if place not in done]
    if missing:
        table.with_suffix(".json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    with table.open("a", encoding="utf-8", newline="") as file, tqdm(total=len(missing), unit="case") as bar:
        if not file.tell():
            file.write(HEADER)
        for each, found in running.measure(missing):
            bar.set_description(str(each))
            bar.update()
            if isinstance(found, Exception):
                failures.append(f"{each}: {found}")
            else:
                file.write(text_of(records.frame_of(found), "%.6g"))
                file.flush()
    return failures


def _agreed(table: Path, origin: dict[str, str]) -> dict[str, str]:
    """Return the provenance of a table that this run continues, with the dates and commands of both."""
    if not table.is_file():
        return origin
    before = records.provenance_of(table)
    for key in ("gpu", "driver", "versions"):
        if before[key] != origin[key]:
            raise ValueError(
                f"{table} was measured with {key} {before[key]}; this is {origin[key]}. "
                "Choose another folder, or remove the table."
            )
    first, commands = before["date"].partition(" to ")[0], before["command"].split("; ")
    dates = dict.fromkeys([first, origin["date"]])
    commands = list(dict.fromkeys([*commands, origin["command"]]))
    return origin | {"date": " to ".join(dates), "command": "; ".join(commands)}


def _mended(table: Path) -> set[str]:
    """Remove the rows of a case that was cut short and return the keys of the cases that the table has."""
    text = table.read_text(encoding="utf-8") if table.is_file() else ""
    if text and not text.startswith(HEADER):
        records.read(table)  # raises an error that names the expected columns; the table is not changed
    lines = [line for line in text.splitlines(keepends=True)[1:] if line.endswith("\n")]
    rows = list(csv.DictReader([HEADER, *lines]))
    ends = [number for number, row in enumerate(rows) if row["quantity"] == END]
    whole = lines[: ends[-1] + 1] if ends else []
    if text and text != (mended := "".join([HEADER, *whole])):
        table.write_text(mended, encoding="utf-8", newline="")
    return set(_places(row_dicts(records.read(table).iloc[ends]))) if ends else set()


def _places(rows: Iterable[Row]) -> list[str]:
    """Return the keys that identify cases: their lines of the table without quantity, unit and value."""
    no_figure = {"quantity": "", "unit": "", "value": None}
    return text_of(records.frame_of({**row, **no_figure} for row in rows)).splitlines()
