"""What the exercises ask, from the solved notebooks: their Markdown as HTML, without headings and hints."""

import re
from collections.abc import Collection
from pathlib import Path

from markupsafe import Markup

from labkit.course.notebooks.catalog import read
from labkit.course.notebooks.page import markdown

_HEADING = re.compile(r"^#+ Exercise (\d\d\.\d+)\b.*$", re.MULTILINE)
_HINT = re.compile(r"<details>.*?</details>", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\.ipynb[^)]*\)")  # to a notebook, which does not lie beside the page


def tasks(solved: Path, exercises: Collection[str]) -> dict[str, Markup]:
    """Return what each of the exercises asks, by id. `solved` is the folder of the solved notebooks."""
    found: dict[str, Markup] = {}
    for path in sorted(solved.glob("*.ipynb")):
        found |= {id: _html(text) for id, text in _sections(path).items() if id in exercises}
    return found


def _sections(path: Path) -> dict[str, str]:
    """Return the Markdown of each exercise: from its heading to the next cell of code."""
    found: dict[str, str] = {}
    exercise = None
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            exercise = None
        elif heading := _HEADING.search(source):
            exercise = heading[1]
            found[exercise] = source[heading.end() :]
        elif exercise:
            found[exercise] += f"\n\n{source}"
    return found


def _html(text: str) -> Markup:
    """Convert the instructor's Markdown to HTML; markup in it stays."""
    return Markup(markdown(_LINK.sub(r"\1", _HINT.sub("", text)).strip()))
