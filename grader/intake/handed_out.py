"""The answer cells as the course hands them out: a cell that is still so is nobody's work."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache

from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import SOLUTIONS, without_solution


def is_as_handed_out(exercise: str, text: str) -> bool:
    """Say whether a cell, with or without its magic line, is as the course hands it out.

    Blanks and empty lines make no difference.
    """
    return _plain(text) in cells().get(exercise, ())


@cache
def cells() -> Mapping[str, frozenset[str]]:
    """Return the texts of each exercise's cell as it is handed out: whole, and below its magic line.

    A clone may have changed a solved notebook since the students' one was made of it, so both are read.
    """
    found: dict[str, set[str]] = {}
    for exercise, text in _cells():
        below = text.partition("\n")[2] if text.startswith("%%") else text
        found.setdefault(exercise, set()).update(map(_plain, (text, below)))
    return {exercise: frozenset(texts) for exercise, texts in found.items()}


def _cells() -> Iterator[tuple[str, str]]:
    for folder in (catalog.shipped(), catalog.shipped() / SOLUTIONS):
        for path in sorted(folder.glob("*.ipynb")):
            for cell in catalog.read(path)["cells"]:
                about = cell.get("metadata", {}).get("labkit", {})
                if about.get("role") == "answer":
                    with suppress(ValueError):  # marks that do not pair: `labkit release` tells of them
                        yield about.get("exercise", ""), without_solution("".join(cell.get("source", "")))


def _plain(text: str) -> str:
    return "\n".join(words for line in text.splitlines() if (words := " ".join(line.split())))
