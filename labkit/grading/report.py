"""Write all that is made of stored results when a class is graded.

GRADES/grades.csv             and the other tables: results/tables.py
GRADES/manifest.json          what took part: results/manifest.py
GRADES/errors.txt             the grader's own errors, for instructors; absent if there were none
GRADES/feedback/<slug>.html   one page per student, and GRADES/overview.html: pages/
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from labkit.grading import pages
from labkit.grading.intake.labs import labs
from labkit.grading.results import manifest
from labkit.grading.results.manifest import Run
from labkit.grading.results.scores import ERRORS, Scores
from labkit.grading.results.store import Store
from labkit.grading.results.tables import Tables
from labkit.grading.text import clean, one_line

MOST_ERROR = 20_000  # characters


@dataclass(frozen=True)
class Summary:
    """How a run went: submissions, those graded in full, those to be graded again; the overview, the
    numbers.
    """

    submissions: int
    graded: int
    to_regrade: int
    overview: Path
    scores: Scores = field(repr=False)


def write_all(store: Store, run: Run, students: Collection[str]) -> Summary:
    """Make tables, manifest and pages of what is stored of these students, of whom some may have no
    results.
    """
    store.out.mkdir(parents=True, exist_ok=True)
    scores = Scores(labs(store.exercises, run.solved))
    without = set(students)
    with Tables(store.out, scores.labs) as tables:
        for graded in store.of(students):
            without.discard(graded.submission.student)
            scores.add(graded)
            tables.add(graded)
        for student in sorted(without):
            scores.leave_out(student)
            tables.leave_out(student)
    _write_errors(store, students)
    overview = pages.write_all(store.out, scores, run, lambda: store.of(students))
    manifest.write(store.out, scores, run, lambda: store.of(students), tables.paths)
    return Summary(scores.students, scores.students - scores.waiting, scores.waiting, overview, scores)


def _write_errors(store: Store, students: Collection[str]) -> None:
    """Write each different error of the grader once per submission, below the exercises that met it."""
    path = store.out / ERRORS
    path.unlink(missing_ok=True)
    for graded in store.of(students):
        met: dict[str, list[str]] = {}
        for result in graded.results:
            if result.inside:
                met.setdefault(result.inside, []).append(result.exercise)
        if met:
            with path.open("a", encoding="utf-8") as file:
                for inside, exercises in met.items():
                    who = f"{one_line(graded.submission.student)}: {', '.join(exercises)}"
                    file.write(f"{who}\n\n{clean(inside[-MOST_ERROR:]).strip()}\n\n\n")
