"""Write all that is made of stored results when a class is graded.

GRADES/grades.csv             and the other tables: results/tables.py
GRADES/manifest.json          what took part: results/manifest.py
GRADES/feedback/<slug>.html   one page per student, and GRADES/overview.html: pages/
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from labkit.grading import pages
from labkit.grading.intake.labs import labs
from labkit.grading.results import manifest
from labkit.grading.results.manifest import Run
from labkit.grading.results.scores import Scores
from labkit.grading.results.store import Store
from labkit.grading.results.tables import Tables


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
    overview = pages.write_all(store.out, scores, run, lambda: store.of(students))
    manifest.write(store.out, scores, run, lambda: store.of(students), tables.paths)
    return Summary(scores.students, scores.students - scores.waiting, scores.waiting, overview, scores)
