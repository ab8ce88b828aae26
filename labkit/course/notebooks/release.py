"""Make the students' notebook from a solved one: solutions and outputs go, everything else stays.

In an answer cell the solution stands between two comments; STUB lines are what a student starts from:

    // BEGIN SOLUTION
    if (i < n)
        x[i] = a * x[i];
    // STUB x[i] = a * x[i];
    // END SOLUTION

becomes

    // your code here
    x[i] = a * x[i];

In Python cells the comments begin with #. A cell of an instructor's own hidden checks, with the metadata
`labkit` {exercise, role: "hidden"}, is left out. notebooks/solutions/ is the one source of notebooks/*.ipynb.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from labkit.course.notebooks import catalog

SOLUTIONS = "solutions"
HIDDEN = "hidden"  # the role of a cell that students do not get

# What is kept of metadata: others tell when a cell ran, what it showed, or what somebody thought of it.
_OF_CELLS = ("deletable", "editable", "labkit", "slideshow", "tags")
_OF_NOTEBOOKS = ("authors", "kernelspec", "labkit", "language_info", "title")
_OF_LABKIT = ("concept", "exercise", "part", "role")

_REGION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<comment>//|#) BEGIN SOLUTION\n(?P<body>.*?)^[ \t]*(?P=comment) END SOLUTION$",
    re.MULTILINE | re.DOTALL,
)
_STUB = re.compile(r"^(?P<indent>[ \t]*)(?://|#) STUB ?(?P<code>.*)$", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*(?://|#) (?:BEGIN SOLUTION|END SOLUTION|STUB\b.*)(?:\n|\Z)", re.MULTILINE)
_DETAILS = "\n\nFailed validating"  # what nbformat tells beside, over many lines
_ANY_MARK = re.compile(r"(BEGIN|END) SOLUTION|(//|#) STUB\b")

MISSING, STALE = "missing", "stale"


class NotReleased(ValueError):
    """Students' notebooks cannot be made; the message names what is wrong, and where."""


@dataclass(frozen=True)
class Page:
    """A file and the text that it should hold.

    It is a students' notebook with what the solved one gives it, or a file that names the repository.
    """

    path: Path
    text: str

    @property
    def state(self) -> str:
        """Return MISSING, STALE if the file holds another text, or nothing."""
        if not self.path.exists():
            return MISSING
        return "" if self.path.is_file() and self.path.read_bytes() == self.text.encode() else STALE

    def write(self) -> None:
        """Make the file hold this text. A link in its place is replaced, never written through."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            part.write_bytes(self.text.encode())
            part.replace(self.path)
        finally:
            part.unlink(missing_ok=True)


def pages(solved: Path, out: Path) -> list[Page]:
    """Make the students' notebooks for the folder `out`, from the solved ones in the folder `solved`.

    Raises NoNotebook where there is none, and NotReleased where one is malformed or `out` is no place for
    them.
    """
    if out.exists() and not out.is_dir():
        raise NotReleased(f"{out} is a file. Name a folder, which need not be there yet.")
    if out.resolve().is_relative_to(solved.resolve()):
        raise NotReleased(f"{out} is where the solved notebooks are. Name another folder.")
    return [Page(out / path.name, _text(path)) for path in catalog.notebooks(solved)]


def orphans(pages: Iterable[Page], out: Path) -> list[Path]:
    """List the notebooks in the folder for which there is no solved one."""
    return sorted(set(out.glob("*.ipynb")) - {page.path for page in pages})


def for_students(solved: NotebookNode) -> NotebookNode:
    """Return the students' version of a solved notebook. Raises ValueError where marks do not pair."""
    cells = [_cell(cell) for cell in solved.cells if _role(cell) != HIDDEN]
    return NotebookNode({**solved, "cells": cells, "metadata": _kept(solved.metadata, _OF_NOTEBOOKS)})


def without_solution(source: str) -> str:
    """Return the source of a cell with each solution replaced by `your code here` and the STUB lines."""
    released = _REGION.sub(_stub, source)
    if left := _ANY_MARK.search(released):
        raise ValueError(f"a cell has {left[0]!r} outside a BEGIN SOLUTION … END SOLUTION region:\n{source}")
    return released


def solution(source: str) -> str:
    """Return the source of a cell as a reader wants it: solved, without the marks and the STUB lines."""
    return _MARKS.sub("", source).rstrip("\n")


def _text(path: Path) -> str:
    """Return the text of the students' notebook of a solved one."""
    try:
        _known_by_their_ids(catalog.read(path))
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        return f"{nbformat.writes(for_students(notebook))}\n"
    except catalog.NoNotebook:
        raise
    except (ValueError, nbformat.ValidationError, AttributeError, TypeError, KeyError) as error:
        raise NotReleased(f"{path} cannot be released: {str(error).partition(_DETAILS)[0]}") from None


def _known_by_their_ids(notebook: dict[str, Any]) -> None:
    """Raise ValueError unless cells have ids that differ: nbformat would draw some, others each time."""
    version = (notebook.get("nbformat"), notebook.get("nbformat_minor"))
    ids = [cell.get("id") for cell in notebook["cells"]]
    if version != (4, 5) or None in ids or len(set(ids)) < len(ids):
        raise ValueError(
            "it wants nbformat 4.5, in which each cell has an id of its own. Open and save it in JupyterLab."
        )


def _cell(cell: NotebookNode) -> NotebookNode:
    """Return the cell as students get it."""
    released = NotebookNode({**cell, "metadata": _kept(cell.metadata, _OF_CELLS)})
    if cell.cell_type == "code":
        return NotebookNode(
            {**released, "source": without_solution(cell.source), "outputs": [], "execution_count": None}
        )
    if _ANY_MARK.search(cell.source):
        raise ValueError(f"a solution's marks are for code cells; here they stand in text:\n{cell.source}")
    return released


def _role(cell: NotebookNode) -> str | None:
    return cell.metadata.get("labkit", {}).get("role")


def _kept(metadata: NotebookNode, names: Iterable[str]) -> NotebookNode:
    """Drop the metadata that students should not or need not get."""
    kept = NotebookNode({name: value for name, value in metadata.items() if name in names})
    if "labkit" in kept:
        kept.labkit = {name: value for name, value in kept.labkit.items() if name in _OF_LABKIT}
    return kept


def _stub(region: re.Match[str]) -> str:
    stubs = [f"{stub['indent']}{stub['code']}".rstrip() for stub in _STUB.finditer(region["body"])]
    return "\n".join([f"{region['indent']}{region['comment']} your code here", *stubs])
