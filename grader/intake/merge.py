"""Answers -> notebooks of our own for nbval: setup, answer and check cells.

Nothing of a submission but the text of its answers is in them. The answers in CUDA share a notebook, and so a
kernel: all that they do there is to be compiled. An answer in C or Python has one to itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grader.intake.magic_line import Refused, rewritten
from grader.model import Answer
from labkit.course.exercise import Criterion, Exercise
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import HIDDEN
from labkit.course.setups import SETUP, needed

CHECK = 'import grader.sandbox.probe\ngrader.sandbox.probe.serve("{exercise}")'
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


class WrongNotebook(ValueError):
    """A solved notebook has a cell that cannot be used; the message names both."""


def notebooks(
    answers: Mapping[str, Answer], exercises: Sequence[Exercise], relied_on: Mapping[str, Sequence[str]]
) -> tuple[list[NotebookNode], dict[str, str]]:
    """Make the notebooks to run for the answers to `exercises`; say by exercise why an answer is left out.

    An exercise without an answer is in neither. `relied_on` is what `setups` tells of all solved notebooks
    together.
    """
    together: dict[str, list[NotebookNode]] = {}
    refused: dict[str, str] = {}
    for exercise in exercises:
        if exercise.id in answers and (source := answers[exercise.id].source):
            try:
                cells = _cells(exercise.id, rewritten(source, exercise))
            except Refused as why:
                refused[exercise.id] = str(why)
                continue
            if exercise.magic == "cuda":
                together.setdefault("cuda", [_setup([SETUP])]).extend(cells)
            else:
                together[exercise.id] = [_setup(needed(relied_on.get(exercise.id, [SETUP]), source)), *cells]
    return [new_notebook(cells=cells, metadata=KERNEL) for cells in together.values()], refused


def hidden_criteria(solved: Path) -> dict[str, tuple[Criterion, ...]]:
    """Return the instructor's hidden checks in a solved notebook, by exercise.

    A code cell with the metadata `labkit` {exercise, role: "hidden"} defines CRITERIA, a tuple of Criterion.
    It runs here, as Python. Raises NoNotebook, and WrongNotebook where such a cell does not do that.
    """
    found: dict[str, tuple[Criterion, ...]] = {}
    for cell in catalog.read(solved)["cells"]:
        exercise, role = _about(cell)
        if cell.get("cell_type") == "code" and role == HIDDEN:
            where = f"{solved}, cell {cell.get('id', '')!r} with hidden checks"
            if not exercise:
                raise WrongNotebook(f"{where}: its metadata do not say for which exercise.")
            found[exercise] = (*found.get(exercise, ()), *_criteria(_source(cell), where))
    return found


def _setup(statements: Sequence[str]) -> NotebookNode:
    return new_code_cell("\n".join(statements), id="setup")


def _cells(exercise: str, source: str) -> list[NotebookNode]:
    """Make the answer cell and the check cell of an exercise."""
    texts = {"answer": source, "check": CHECK.format(exercise=exercise)}
    return [
        new_code_cell(
            text,
            id=f"{role}-{exercise.replace('.', '-')}",
            metadata={"labkit": {"exercise": exercise, "role": role}},
        )
        for role, text in texts.items()
    ]


def _about(cell: dict[str, Any]) -> tuple[str, str]:
    """Return the exercise and the role in a cell's metadata; both are empty where they are missing."""
    about = cell.get("metadata", {}).get("labkit", {})
    return about.get("exercise", ""), about.get("role", "")


def _source(cell: dict[str, Any]) -> str:
    """Return a cell's text; the file has a list of lines, or one string."""
    return "".join(cell.get("source", ""))


def _criteria(source: str, where: str) -> tuple[Criterion, ...]:
    """Return the criteria that a cell of hidden checks defines."""
    named: dict[str, Any] = {"__name__": "hidden checks"}
    try:
        exec(compile(source, where, "exec"), named)
    except Exception as error:
        raise WrongNotebook(f"{where}: {type(error).__name__}: {error}") from error
    criteria = named.get("CRITERIA")
    if not isinstance(criteria, tuple) or not all(isinstance(each, Criterion) for each in criteria):
        raise WrongNotebook(
            f"{where}: it does not define CRITERIA, a tuple of labkit.course.exercise.Criterion."
        )
    return criteria
