"""`labkit bench`: rungs × parameters × sizes on this machine's GPU, as a table for `records.recorded`.

The table is bench.csv in the folder given, a few rows a case as each is measured, and bench.json says on what
and with what. Cases that the table has are not measured again, so an interrupted run goes on where it was.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from labkit.c.compile import find_compiler
from labkit.device.timing import breakdown
from labkit.kernels.problem import Matmul, Transpose, problem
from labkit.ladder import ceilings, records, running
from labkit.ladder.records import COLUMNS, REPORT_TIME
from labkit.ladder.running import END, Case, Row, case
from labkit.ladder.transpose_report import ITERATIONS, SIZE, TRIPS, transpose_report

HEADER = ",".join(COLUMNS) + "\n"
TILES = (1, 2, 4, 8, 16, 32)
ENOUGH = 2**33  # multiply-adds, for each element of a tile, that are enough to time: half a second on an H200
OF_LIBRARY = 680  # the size of report cublas-gap
SHAPES = ((32, 32, 32), (256, 256, 256), (4096, 4096, 2048))  # M, N, K of report tiled-matmul-ko
STEPS = {  # of timing.STEPS: what tables call them
    "context creation": "context_time",
    "allocation": "malloc_time",
    "pinning": "pin_time",
    "host to device": "htod_time",
    "kernel": "kernel_time",
    "device to host": "dtoh_time",
    "end to end": "total_time",
}


@dataclass(frozen=True)
class Band(Case):
    """A product of which only the top rows of C are computed, `m` of them in all: small tiles take minutes.

    A row of C costs as much as any other, so the time is that of the band, scaled; `note` says so.
    """

    m: int = 0

    def place(self) -> Row:
        """The case's place, with the rows of the whole product."""
        assert isinstance(self.problem, Matmul)
        return super().place() | {"m": self.m, "note": f"{self.problem.M} of {self.m} rows of C, scaled"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Rows of the whole product: the times of a band of it, scaled."""
        assert isinstance(self.problem, Matmul)
        times = self.m / self.problem.M
        return [
            row | {"value": row["value"] * times} if row["unit"] == "ms" else row
            for row in super().rows(args)
        ]


@dataclass(frozen=True)
class Breakdown(Case):
    """All that happens from host arrays to a host result, see `timing.breakdown`."""

    def place(self) -> Row:
        """The case's place, noted as a breakdown."""
        return super().place() | {"note": "breakdown"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """A row a step and statistic: `htod_time` is the average of repeated calls, `htod_time_first`, …

        `note` says which kind of host memory a step depends on.
        """
        table = breakdown(self.problem, *self.compiled())
        rows = [row for _, step in table.iterrows() for row in self._step_rows(step)]
        return [*rows, self.place() | {"quantity": END, "unit": "1", "value": table.calls.max()}]

    def _step_rows(self, step: pd.Series) -> list[Row]:
        place, name = self.place() | {"note": step.host_memory, "unit": "ms"}, STEPS[step.step]
        values = {"": step.avg_ms, "_first": step.first_ms, "_min": step.min_ms, "_max": step.max_ms}
        return [
            place | {"quantity": name + which, "value": value, "source": step.source}
            for which, value in values.items()
            if pd.notna(value)
        ]


@dataclass(frozen=True)
class AsReported(Case):
    """The steps of report int-transpose in its way, see `transpose_report`."""

    def place(self) -> Row:
        """The case's place, noted with the number of launches in a time."""
        return super().place() | {"note": f"for {ITERATIONS} iterations"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """A row a step and quantity, the CPU's first; `args` are not used.

        Its `time`, of all iterations and copies, is REPORT_TIME here, where `time` is that of one launch.
        """
        assert isinstance(self.problem, Transpose)
        table = transpose_report(problem=self.problem).replace({"quantity": {"time": REPORT_TIME}})
        return [*_named(table), self.place() | {"quantity": END, "unit": "1", "value": TRIPS}]


@dataclass(frozen=True)
class Ceilings(Case):
    """What this GPU can do at most, see `ceilings.table`."""

    def place(self) -> Row:
        """The case's place, noted as ceilings."""
        return super().place() | {"note": "ceilings"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """A row a ceiling; `args` are not used."""
        return [*_named(ceilings.table()), self.place() | {"quantity": END, "unit": "1", "value": 1}]


def _named(table: pd.DataFrame) -> list[Row]:
    return [{str(column): cell for column, cell in row.items()} for row in table.to_dict("records")]


def _matmul(quick: bool) -> Iterator[Case]:
    """The ladder of products and cuBLAS; naive and tiled also in float64; N = 680 as in report cublas-gap."""
    for n in (256, 1024, 2048) if quick else (256, 512, 1024, 2048, 4096, 8192):
        yield from running.cases(problem("matmul", n, n, n))
        for rung in () if quick else ("naive", "tiled", "cublas"):
            yield case(rung, problem("matmul", n, n, n, dtype="float64"))
    for rung in ("naive", "tiled", "tiled_unrolled"):
        yield case(rung, problem("matmul", *[OF_LIBRARY] * 3), TILE=32)
    yield case("cublas", problem("matmul", *[OF_LIBRARY] * 3))


def _tiles(quick: bool) -> Iterator[Case]:
    """Naive and tiled with square blocks of side 1 to 32, as in reports int-matmul and cpu-gpu-matmul."""
    sizes = (1024,) if quick else (256, 512, 1024, 2048, 4096, 8192)
    for dtype, n, rung, tile in product(("float32", "int32"), sizes, ("naive", "tiled"), TILES):
        rows = min(n, n * ENOUGH * tile**2 // n**3)
        band = case(rung, problem("matmul", rows, n, n, dtype=dtype), TILE=tile)
        yield band if rows == n else Band(rung, band.problem, band.macros, m=n)


def _shapes(quick: bool) -> Iterator[Case]:
    """The small, medium and large product of report tiled-matmul-ko."""
    for size in SHAPES[:2] if quick else SHAPES:
        yield case("naive", problem("matmul", *size), TILE=16)
        for tile in (4, 8, 16, 32):
            yield case("tiled", problem("matmul", *size), TILE=tile)


def _transpose(quick: bool) -> Iterator[Case]:
    """The ladder of transposes and cudaMemcpy; report int-transpose as it was, where a C compiler is
    at hand.
    """
    sizes, dtypes = (1024, 2048, 4096, 8192, 16384), ("int32", "float32", "float64")
    for n, dtype in product(sizes[:3] if quick else sizes, dtypes[:2] if quick else dtypes):
        yield from running.cases(problem("transpose", n, n, dtype=dtype))
    if find_compiler():
        yield AsReported("naive", SIZE, case("naive", SIZE).macros)


def _breakdown(quick: bool) -> Iterator[Case]:
    """From host to host: products of report cpu-gpu-matmul."""
    for n in (1024,) if quick else (512, 1024, 2048, 4096):
        yield _broken_down(case("naive", problem("matmul", n, n, n)))


def _broken_down(case: Case) -> Breakdown:
    return Breakdown(case.rung, case.problem, case.macros)


def _ceilings(quick: bool) -> Iterator[Case]:
    """The roofs of the roofline."""
    yield Ceilings(running.CEILING, ceilings.PLANE)


SECTIONS: dict[str, Callable[[bool], Iterator[Case]]] = {
    "matmul": _matmul,
    "tiles": _tiles,
    "shapes": _shapes,
    "transpose": _transpose,
    "breakdown": _breakdown,
    "ceilings": _ceilings,
}


def plan(quick: bool = False, only: Iterable[str] = ()) -> list[Case]:
    """The cases of the sections `only` (all where none is named), each once, those of one problem together.

    `quick` leaves out large sizes. Raises ValueError for a section that there is not.
    """
    if unknown := [name for name in only if name not in SECTIONS]:
        raise ValueError(f"there is no section {unknown[0]!r}. Choose from {', '.join(SECTIONS)}.")
    cases = [each for name, make in SECTIONS.items() if not only or name in only for each in make(quick)]
    return sorted(
        dict.fromkeys(cases),
        key=lambda each: (each.family, each.problem.dtype, each.problem.bytes, str(each.problem)),
    )


def run(cases: Iterable[Case], folder: Path, origin: dict[str, str]) -> list[str]:
    """Measure the cases that folder/bench.csv does not have yet, with a progress bar.

    `origin` is `records.provenance` of this run. Returns what went wrong, a line a case. Raises ValueError
    where the table is of another GPU, driver or version.
    """
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    table, failures = folder / "bench.csv", []
    origin = _agreed(table, origin)
    done = _mended(table)
    missing = [each for each in cases if _place(each.place()) not in done]
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
                file.write(_lines(found))
                file.flush()
    return failures


def _agreed(table: Path, origin: dict[str, str]) -> dict[str, str]:
    """The provenance of a table that this run goes on with: both dates and commands, and all else the
    same.
    """
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


def _mended(table: Path) -> set[tuple[str, ...]]:
    """Places of the cases that the table has; of a case that was cut short nothing is left in it."""
    text = table.read_text(encoding="utf-8") if table.is_file() else ""
    lines = [line for line in text.splitlines(keepends=True)[1:] if line.endswith("\n")]
    rows = list(csv.DictReader([HEADER, *lines]))
    ends = [number for number, row in enumerate(rows) if row["quantity"] == END]
    whole = lines[: ends[-1] + 1] if ends else []
    if text and text != (mended := "".join([HEADER, *whole])):
        table.write_text(mended, encoding="utf-8", newline="")
    return {_place(rows[number]) for number in ends}


def _lines(rows: Iterable[Row]) -> str:
    """The rows as lines of the table, with six digits of each figure."""
    frame = records.frame_of(rows)[[*COLUMNS]]
    return frame.to_csv(header=False, index=False, lineterminator="\n", float_format="%.6g")


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What tells a case from others, as text: all columns but quantity, unit and value."""
    place = [row[column] for column in COLUMNS if column not in ("quantity", "unit", "value")]
    return tuple("" if cell is None else str(cell) for cell in place)
