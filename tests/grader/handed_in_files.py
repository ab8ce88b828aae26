"""Files as students hand them in, for the tests of what is read of them."""

import json
from pathlib import Path

from grader.intake import submissions
from grader.intake.submissions import found
from grader.model import File, Submission
from labkit.course import EXERCISES
from labkit.course.notebooks import catalog

RELEASED = {path.name for path in catalog.notebooks(catalog.shipped())}
LAB_02, LAB_03 = "02_naive_cuda.ipynb", "03_shared_memory_tiling.ipynb"


def code(source, exercise=None, role="answer", kind="code"):
    """A cell; `exercise` and `role` are what its metadata say."""
    metadata = {"labkit": {"exercise": exercise, "role": role}} if exercise else {}
    made = {"cell_type": kind, "source": source, "metadata": metadata}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def answer(exercise, body):
    """A cell that answers an exercise with this text."""
    return code(f"%%{EXERCISES[exercise].magic} {exercise}\n{body}", exercise)


def notebook(*cells):
    """The text of a notebook."""
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def put(path, *cells):
    """Write a notebook of these cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook(*cells), encoding="utf-8")
    return path


def cells_of(name):
    """The cells of a notebook as the course hands it out."""
    return catalog.read(catalog.shipped() / name)["cells"]


def stub(exercise):
    """An answer cell as the course hands it out."""
    return next(cell for cell in cells_of(notebook_of(exercise)) if _answers(cell, exercise))


def notebook_of(exercise):
    """The name of the course's notebook in which an exercise stands."""
    names = [path.name for path in catalog.notebooks(catalog.shipped())]
    return next(name for name in names if any(_answers(cell, exercise) for cell in cells_of(name)))


def _answers(cell, exercise):
    return cell["metadata"].get("labkit") == {"exercise": exercise, "role": "answer"}


def hand_out(path, *changed):
    """Write the course's notebook of that lab, with these answers in the place of the cells as handed out."""
    lab = notebook_of(changed[0]["metadata"]["labkit"]["exercise"])
    by_exercise = {cell["metadata"]["labkit"]["exercise"]: cell for cell in changed}
    cells = []
    for cell in cells_of(lab):
        about = cell["metadata"].get("labkit", {})
        replaced = by_exercise.get(about.get("exercise")) if about.get("role") == "answer" else None
        cells.append(replaced or cell)
    return put(path, *cells)


def read_all(folder: Path) -> dict[str, Submission]:
    """Read the submissions in a folder, by student."""
    return {entry.student: submissions.read(entry, EXERCISES, RELEASED) for entry in found(folder)}


def read_one(folder: Path) -> Submission:
    """Read the one submission in a folder."""
    (submission,) = read_all(folder).values()
    return submission


def fates(submission: Submission) -> dict[str, str]:
    """What became of each file."""
    return {file.name: file.fate for file in submission.found}


def listed(submission: Submission) -> set[str]:
    """The files that a line of the overview names."""
    return {
        file.name
        for file in submission.found
        if any(each.startswith(f"{file.name} ") for each in submission.problems)
    }


def fate_of(submission: Submission, name: str) -> File:
    """What became of one file."""
    return next(file for file in submission.found if file.name == name)
