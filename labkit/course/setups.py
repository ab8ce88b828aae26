"""What an answer in Python may rely on beside its own cell: imports and definitions of the course above it.

The grader runs an answer with these and no other cell; a check in the notebook does the same.
"""

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.course.notebooks import catalog

SETUP = "%load_ext labkit"
OUT_OF_REACH = "labkit.course"  # holds the criteria: a sandbox has none of it


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
            above += _bindings("".join(cell.get("source", "")))
    return found


def needed(statements: Sequence[str], answer: str) -> list[str]:
    """Return those that bind a name which the answer has, or another that it needs: to import plots takes
    seconds.
    """
    needed: list[str] = []
    for statement in reversed(statements):
        words = set(re.findall(r"\w+", "\n".join([answer, *needed])))
        if statement.startswith("%") or words & bound(statement):
            needed.insert(0, statement)
    return needed


def bound(statement: str) -> set[str]:
    """Return the names that an import, a definition or an assignment binds."""
    (part,) = ast.parse(statement).body
    if isinstance(part, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in part.names}
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        return {part.name}
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}


def _about(cell: dict[str, Any]) -> tuple[str, str]:
    """Return the exercise and the role in a cell's metadata; both are empty where they are missing."""
    about = cell.get("metadata", {}).get("labkit", {})
    return about.get("exercise", ""), about.get("role", "")


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
