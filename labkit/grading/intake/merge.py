"""Answers -> notebooks of our own for nbval: setup, answer and check cells.

Nothing of a submission but the text of its answers is in them. The answers in CUDA share a notebook, and so a
kernel: all that they do there is to be compiled. An answer in C or Python has one to itself.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from labkit.course.exercise import Criterion, Exercise
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import HIDDEN
from labkit.grading.intake.magic_line import Refused, rewritten
from labkit.grading.model import Answer

SETUP = "%load_ext labkit"
CHECK = 'import labkit.grading.sandbox.probe\nlabkit.grading.sandbox.probe.serve("{exercise}")'
OUT_OF_REACH = "labkit.course"  # holds the criteria: a sandbox has none of it
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


class WrongNotebook(ValueError):
    """A solved notebook has a cell that cannot be used; the message names both."""


def notebooks(
    answers: Mapping[str, Answer], exercises: Sequence[Exercise], setups: Mapping[str, Sequence[str]]
) -> tuple[list[NotebookNode], dict[str, str]]:
    """Make the notebooks to run for the answers to `exercises`; say by exercise why an answer is left out.

    An exercise without an answer is in neither. `setups` is what the function of that name tells, of all
    solved notebooks together.
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
                together[exercise.id] = [_setup(_needed(setups.get(exercise.id, [SETUP]), source)), *cells]
    return [new_notebook(cells=cells, metadata=KERNEL) for cells in together.values()], refused


def setups(solved: Path) -> dict[str, tuple[str, ...]]:
    """Return what an answer in Python may rely on, by exercise: statements for its setup cell.

    That is what the cells above it in the solved notebook import, and what they define if they do nothing
    else. Answers, predictions and checks are left out. Raises NoNotebook.
    """
    found: dict[str, tuple[str, ...]] = {}
    above = [SETUP]
    for cell in catalog.read(solved)["cells"]:
        exercise, role = _about(cell)
        if cell.get("cell_type") == "code" and role == "answer":
            found[exercise] = tuple(above)
        elif cell.get("cell_type") == "code" and not role:
            above += _bindings(_source(cell))
    return found


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


def _bindings(source: str) -> list[str]:
    """Return a cell's imports, and also its definitions where it does nothing else."""
    lines = source.splitlines()
    try:
        body = ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!")))).body
    except SyntaxError:  # the cell of another magic
        return []
    imports = [part for part in body if _imports(part)]
    kept = body if all(_imports(part) or _defines(part) for part in body) else imports
    loaded = [line for line in lines if line.startswith("%load_ext ") and line != SETUP]
    return loaded + [ast.unparse(part) for part in kept if OUT_OF_REACH not in ast.unparse(part)]


def _needed(statements: Sequence[str], answer: str) -> list[str]:
    """Return those that bind a name which the answer has, or another that it needs: to import plots takes
    seconds.
    """
    needed: list[str] = []
    for statement in reversed(statements):
        words = set(re.findall(r"\w+", "\n".join([answer, *needed])))
        if statement.startswith("%") or words & _bound(statement):
            needed.insert(0, statement)
    return needed


def _bound(statement: str) -> set[str]:
    """Return the names that an import, a definition or an assignment binds."""
    (part,) = ast.parse(statement).body
    if isinstance(part, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in part.names}
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        return {part.name}
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}


def _imports(part: ast.stmt) -> bool:
    return isinstance(part, ast.Import | ast.ImportFrom)


def _defines(part: ast.stmt) -> bool:
    """Tell whether this defines a function, a class or a constant."""
    if isinstance(part, ast.Assign):
        try:
            ast.literal_eval(part.value)
        except ValueError:
            return False
        return True
    return isinstance(part, ast.FunctionDef | ast.ClassDef)


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
