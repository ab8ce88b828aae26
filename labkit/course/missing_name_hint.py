"""A cell that misses a name which another cell of the notebook sets: say which cell to run.

That happens after a restart, when a cell is run before those above it.
"""

import os
import re
import symtable
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.display import display

from labkit.course.notebooks import catalog
from labkit.course.notebooks.catalog import anchor

_HEADING = re.compile(r"^#+ (.+?) *$", re.MULTILINE)
_MAGIC = re.compile(r"%%(?:cuda|c)[ \t]+([A-Za-z_]\w*)")
_OTHER = re.compile(r"^[%!].*$", re.MULTILINE)  # lines that are not Python's

_told_by: Callable[[ExecutionResult], None] | None = None  # what is registered


@dataclass(frozen=True)
class Hint:
    """Where a name is set: `place` is `above` or `below` the cell that misses it, or empty if unknown."""

    name: str
    heading: str
    place: str = ""

    def __str__(self) -> str:
        return self._told(f"“{self.heading}”" if self.heading else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        link = f'<a href="{escape(anchor(self.heading))}">{escape(self.heading)}</a>' if self.heading else ""
        told = self._told(link).replace(f"`{self.name}`", f"<code>{escape(self.name)}</code>")
        return f'<div style="margin: 0.4em 0">{told}</div>'

    def _told(self, heading: str) -> str:
        cell = f"a cell {self.place or 'of this notebook'}" + f", under {heading}" * bool(heading)
        all_above = (
            "" if self.place == "below" else " Or run all above this one: Run > Run All Above Selected Cell."
        )
        return f"`{self.name}` is set in {cell}. Run that cell first.{all_above}"


def tell_in(shell: InteractiveShell, number: str) -> None:
    """Have the notebook of this number, such as 02, say which cell to run where a name is missing."""
    global _told_by
    if _told_by in shell.events.callbacks["post_run_cell"]:
        shell.events.unregister("post_run_cell", _told_by)

    def tell(result: ExecutionResult) -> None:
        error = result.error_in_exec
        running = str(result.info.raw_cell) if result.info else ""
        if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
            for path in _files(number):
                if found := hint(_cells(path), error.name or "", running):
                    display(found)
                    return

    shell.events.register("post_run_cell", tell)
    _told_by = tell


def hint(cells: list[dict[str, Any]], name: str, running: str) -> Hint | None:
    """Find the cell that sets `name`: the nearest above the one that runs, or else the first."""
    here = next((place for place, cell in enumerate(cells) if _source(cell).strip() == running.strip()), None)
    heading, first = "", None
    above: Hint | None = None
    for place, cell in enumerate(cells):
        if cell.get("cell_type") == "markdown":
            heading = next(iter(reversed(_HEADING.findall(_source(cell)))), heading)
        elif place != here and cell.get("cell_type") == "code" and name in _set_in(_source(cell)):
            side = "" if here is None else "above" if place < here else "below"
            found = Hint(name, heading, side)
            first = first or found
            above = found if side == "above" else above
    return above or first


def _files(number: str) -> Iterator[Path]:
    """Name the files that may be the notebook: as Jupyter says, the student's, and the course's own."""
    if named := os.environ.get("JPY_SESSION_NAME", ""):
        yield Path(named)
    for path in catalog.notebooks(catalog.shipped()):
        if path.name.startswith(f"{number}_"):
            yield Path.cwd() / path.name
            yield path


def _cells(path: Path) -> list[dict[str, Any]]:
    try:
        cells = catalog.read(path)["cells"]
    except catalog.NoNotebook:
        return []
    return [cell for cell in cells if isinstance(cell, dict)]


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell.get("source", ""))


def _set_in(source: str) -> set[str]:
    """Return the names that a cell sets outside its functions."""
    if match := _MAGIC.match(source):
        return {match[1]}
    try:
        table = symtable.symtable(_OTHER.sub("pass", source), "cell", "exec")
    except SyntaxError:
        return set()
    return {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
