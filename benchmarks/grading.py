"""What grading a class takes: submissions a minute, what it adds to plain nbval, and memory.

    python benchmarks/grading.py [--lab 02] [--students 24] [--workers 1 2] [--memory 10 100 500]

The class is made up: of each exercise a student has the solution (three in five), a typical mistake of the
tests, or the cell as it was released. No two answers are the same text. Each measurement has a process of its
own, and begins when its workers have graded one submission each. The device is the simulator.

Beside grading stands plain nbval (--nbval-lax, no sandbox) on the same answers, in turns in one process: a
notebook of the first cell, which loads labkit, the answers and the released check cells; and the
whole solved notebook. Each time is that of pytest.main from start to end, with a kernel of its own.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

os.environ["LABKIT_DEVICE"] = "simt"

import nbformat
import pandas as pd
import pytest

from grader.judging import engine, judge
from grader.judging.pool import Pool
from grader.model import Answer, Submission
from grader.sandbox import process
from labkit.course.notebooks.release import solution, without_solution

ROOT = Path(__file__).parent.parent
TESTS = str(ROOT / "tests" / "labkit" / "course")
SEED = 7
MARK = {"cuda": "//", "c": "//", "answer": "#"}
NBVAL = ("--nbval-lax", "--nbval-current-env", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def answers(lab: str, drawn: random.Random, student: str) -> dict[str, Answer]:
    """What a made-up student answers."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    tables, found = import_module("course_tables"), {}
    for id, exercise in sorted(judge.asked([lab]).items()):
        mistakes = [row.replacements for row in tables.mistakes() if row.exercise == id]
        kind = drawn.choices(["solved", "wrong", "released"], [3, 1.5 * bool(mistakes), 0.5])[0]
        source = tables.SOLVED[id]
        if kind == "wrong":
            source = tables.mutant(id, *drawn.choice(mistakes))
        source = without_solution(source) if kind == "released" else solution(source)
        found[id] = Answer(id, f"{source}\n{MARK[exercise.magic]} {student}")
    return found


def made_up(lab: str, students: int) -> Iterator[Submission]:
    """A class, read lazily."""
    drawn = random.Random(SEED)
    for number in range(students):
        student = f"student{number:04}"
        yield Submission(student, labs=(lab,), answers=answers(lab, drawn, student))


def graded(lab: str, students: int, workers: int) -> dict[str, Any]:
    """Grade a class on worker processes: seconds to start them, seconds for the class, peaks of memory."""
    start = perf_counter()
    with Pool(workers) as pool:
        job = engine.Job((lab,), SEED, process.best(), judge.grade)
        list(engine.grade_all(pool, made_up(lab, 2 * workers), job))
        ready = perf_counter()
        found = engine.grade_all(pool, made_up(lab, students), job)
        broken = sum(result.points is None for each in found for result in each.results)
        end = perf_counter()
        peaks = [peak_bytes(pid) for pid in pool.pids()]
    return {
        "students": students,
        "workers": workers,
        "start s": ready - start,
        "class s": end - ready,
        "a minute": 60 * students / (end - ready),
        "to regrade": broken,
        "client MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "worker MB": max(peaks) / 1e6,
    }


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def beside_nbval(lab: str, students: int) -> list[dict[str, Any]]:
    """Medians of the seconds for a submission in three ways, one after the other in the same process."""
    (solved,) = (ROOT / "notebooks" / "solutions").glob(f"{lab}_*.ipynb")
    seconds: dict[str, list[float]] = {}
    for submission in made_up(lab, students + 1):
        ways = {
            "nbval: setup, answers and checks": partial(by_nbval, answered(solved, submission)),
            "graded": partial(judge.grade, submission, [lab], SEED, process.best()),
        }
        for way, run in ways.items():
            seconds.setdefault(way, []).append(timed(run))
    whole = nbformat.read(solved, as_version=4)
    seconds["nbval: the whole solved notebook"] = [timed(partial(by_nbval, whole)) for _ in range(3)]
    first = median(seconds["nbval: setup, answers and checks"][1:])
    return [
        {"way": way, "s a submission": median(each[1:]), "×": median(each[1:]) / first}
        for way, each in seconds.items()
    ]


def by_nbval(notebook: nbformat.NotebookNode) -> None:
    """Run a notebook under plain nbval, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(notebook, Path(folder, "notebook.ipynb"))
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            pytest.main([*NBVAL, f"--rootdir={folder}", folder])


def timed(run: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = perf_counter()
    run()
    return perf_counter() - start


def answered(solved: Path, submission: Submission) -> nbformat.NotebookNode:
    """The first code cell, which loads labkit, then the submission's answers and the released check cells."""
    notebook = nbformat.read(solved, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = code[:1]
    for cell in code[1:]:
        about = cell.metadata.get("labkit", {})
        if about.get("role") == "answer":
            cell.source = submission.answers[about["exercise"]].source
        if about.get("role") in ("answer", "check"):
            kept.append(cell)
    notebook.cells = kept
    return notebook


def alone(function: Callable[..., Any], *arguments: object) -> Any:
    """What a function gives in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    print(
        pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.2f}"),
        end="\n\n",
        flush=True,
    )


def main() -> None:
    """Measure, and print as it comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lab", default="02")
    parser.add_argument("--students", type=int, default=24)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--memory", type=int, nargs="*", default=[10, 100, 500])
    asked = parser.parse_args()
    lab, students = asked.lab, asked.students
    print(f"lab {lab}, isolation: {process.best()}, {len(os.sched_getaffinity(0))} cores\n")

    rows = [alone(graded, lab, students, workers) for workers in asked.workers]
    show([{**row, "× the first": row["a minute"] / rows[0]["a minute"]} for row in rows])

    show(alone(beside_nbval, lab, students))

    if asked.memory:
        show([alone(graded, lab, count, max(asked.workers)) for count in asked.memory])


if __name__ == "__main__":
    main()
