"""Planted mistakes (tests/gallery/bugs): found by compute-sanitizer on an H200, found by `kernel.check`.

usage: python benchmarks/compare_sanitizer.py [--all] [--markdown]

What compute-sanitizer said is recorded in data/h200/gallery/sanitizer.csv, by benchmarks/record_gallery.py. A
mistake counts as found where the tool that should name the marked line does, or the other line of a race. A
mistake that a GPU refuses to launch at all is left out.
"""

import csv
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["LABKIT_DEVICE"] = "simt"

import typer  # noqa: E402
from gallery import Case, cases  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import simt  # noqa: E402

RECORD = ROOT / "data" / "h200" / "gallery" / "sanitizer.csv"
# The first pattern that a kernel's name begins with is its class.
CLASSES = {
    "oob_shared": "out of bounds in shared memory",
    "oob_local": "out of bounds in a local array",
    "oob": "out of bounds in global memory",
    "null|misaligned": "null pointer, misaligned access",
    "dtype": "array of another type than the kernel reads",
    "race_global|race_stencil": "race in global memory",
    "race": "race in shared memory",
    "init_(global|accumulate|atomic)": "uninitialised global memory",
    "init": "uninitialised shared or local memory",
    "sync_(warp|shuffle|ballot)": "mask of a warp-wide operation",
    "sync": "divergent __syncthreads",
    "assert|trap": "assertion, trap",
    "endless": "endless loop",
}


@dataclass(frozen=True)
class Mistake:
    """A planted mistake, and whether each of the two names its line."""

    name: str
    kind: str
    theirs: bool
    ours: bool


def main(
    every: Annotated[bool, typer.Option("--all", help="a row for each mistake")] = False,
    markdown: Annotated[bool, typer.Option(help="print the table as Markdown")] = False,
) -> None:
    """Print how many planted mistakes of each class compute-sanitizer and `kernel.check` found."""
    mistakes = [compared(case) for case in cases("bugs") if runs(case)]
    rows = list(detailed(mistakes) if every else summed(mistakes))
    head = ("mistake", "planted", "compute-sanitizer", "kernel.check")
    if markdown:
        print("\n".join(f"| {' | '.join(row)} |" for row in (head, ("---", *["---:"] * 3), *rows)))
        return
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def summed(mistakes: list[Mistake]) -> Iterator[tuple[str, ...]]:
    """A row a class, then all."""
    for kind in CLASSES.values():
        yield counted(kind, [mistake for mistake in mistakes if mistake.kind == kind])
    yield counted("all", mistakes)


def counted(name: str, mistakes: list[Mistake]) -> tuple[str, ...]:
    found = sum(mistake.theirs for mistake in mistakes), sum(mistake.ours for mistake in mistakes)
    return name, str(len(mistakes)), *map(str, found)


def detailed(mistakes: Iterable[Mistake]) -> Iterator[tuple[str, ...]]:
    for mistake in mistakes:
        yield (
            mistake.name,
            mistake.kind,
            *("yes" if found else "" for found in (mistake.theirs, mistake.ours)),
        )


def runs(case: Case) -> bool:
    """Would a GPU run it? An array of a wrong type it takes; other wrong launches it refuses."""
    return case.refused is None or case.file.startswith("dtype")


def compared(case: Case) -> Mistake:
    kind = next(kind for pattern, kind in CLASSES.items() if re.match(pattern, case.name))
    return Mistake(case.name, kind, theirs=found_by_sanitizer(case), ours=found_here(case))


def found_by_sanitizer(case: Case) -> bool:
    """Did the right tool name the guilty line? An assertion, or an array of a wrong type, need no line."""
    rows = [row for row in recorded() if row["kernel"] == case.name and row["kind"]]
    if not case.expected or case.expected[0].kind == "assert":
        return bool(rows)
    (expected,) = case.expected
    return any(
        row["tool"] == expected.tool and not guilty(case).isdisjoint(map(int, row["lines"].split()))
        for row in rows
    )


def found_here(case: Case) -> bool:
    args = tuple(case.args(empty=simt.empty).values())
    module = simt.RawModule(code=case.source, options=case.options, name_expressions=case.name_expressions)
    findings = module.get_function(case.entry).check(
        case.grid, case.block, args, shared_mem=case.shared_mem, timeout=case.timeout
    )
    if not case.expected:
        return any(re.search(case.refused or "", finding.message) for finding in findings)
    return any(
        finding.tool == expected.tool and finding.line in guilty(case)
        for expected in case.expected
        for finding in findings
    )


def guilty(case: Case) -> set[int]:
    """Lines that a finding may name: the marked one, those as good, the other side of a race."""
    return {
        line
        for expected in case.expected
        for line in (expected.line, *expected.alternatives, expected.other)
        if line is not None
    }


@cache
def recorded() -> list[dict[str, str]]:
    return list(csv.DictReader(RECORD.read_text().splitlines()))


if __name__ == "__main__":
    typer.run(main)
