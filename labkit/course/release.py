"""From a solved notebook to the students' notebook: solutions and outputs out, everything else kept.

In an answer cell the solution stands between two comments; STUB lines are what a student starts from:

    // BEGIN SOLUTION
    if (i < n)
        x[i] = a * x[i];
    // STUB x[i] = a * x[i];
    // END SOLUTION

becomes

    // your code here
    x[i] = a * x[i];

In Python cells the comments begin with #. notebooks/solutions/ is the one source of notebooks/*.ipynb.
"""

import copy
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

SOLUTIONS = "solutions"

_REGION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<comment>//|#) BEGIN SOLUTION\n(?P<body>.*?)^[ \t]*(?P=comment) END SOLUTION$",
    re.MULTILINE | re.DOTALL,
)
_STUB = re.compile(r"^(?P<indent>[ \t]*)(?://|#) STUB ?(?P<code>.*)$", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*(?://|#) (?:BEGIN SOLUTION|END SOLUTION|STUB\b.*)(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    "One students' notebook: its file, and the text that the solved notebook gives it."

    path: Path
    text: str

    @property
    def stale(self) -> bool:
        "True if the file does not hold this text."
        return not self.path.is_file() or self.path.read_text(encoding="utf-8") != self.text

    def write(self) -> None:
        "Make the file hold this text."
        self.path.write_text(self.text, encoding="utf-8")


def pages(notebooks: Path) -> list[Page]:
    "The students' notebooks that belong into the folder `notebooks`, from those in its solutions/."
    return [
        Page(notebooks / solved.name, _text(for_students(nbformat.read(solved, as_version=4))))
        for solved in sorted((notebooks / SOLUTIONS).glob("*.ipynb"))
    ]


def orphans(notebooks: Path) -> list[Path]:
    "Students' notebooks in the folder for which there is no solved one."
    return sorted(set(notebooks.glob("*.ipynb")) - {page.path for page in pages(notebooks)})


def for_students(solved: NotebookNode) -> NotebookNode:
    "The students' version of a solved notebook. Raises ValueError where a solution's marks do not pair."
    notebook = copy.deepcopy(solved)
    notebook.metadata.pop("widgets", None)  # the state of sliders is an output, too
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = without_solution(cell.source)
            cell.outputs, cell.execution_count = [], None
    return notebook


def without_solution(source: str) -> str:
    "The source of a cell with each solution replaced by `your code here` and the STUB lines."
    released = _REGION.sub(_stub, source)
    left = re.search(r"(BEGIN|END) SOLUTION|(//|#) STUB\b", released)
    if left:
        raise ValueError(f"a cell has {left[0]!r} outside a BEGIN SOLUTION … END SOLUTION region:\n{source}")
    return released


def solution(source: str) -> str:
    "The source of a cell as a reader wants it: solved, without the marks and the STUB lines."
    return _MARKS.sub("", source).rstrip("\n")


def _text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook) + "\n"


def _stub(region: re.Match[str]) -> str:
    stubs = [f"{stub['indent']}{stub['code']}".rstrip() for stub in _STUB.finditer(region["body"])]
    return "\n".join([f"{region['indent']}{region['comment']} your code here", *stubs])
