"""Where results are kept, and all that is made of them when a class is graded.

GRADES/results/<slug>.json    a submission's results, written as soon as it is graded
GRADES/grades.csv             and the other tables: tables.py
GRADES/manifest.json          what took part: manifest.py
GRADES/feedback/<slug>.html   a page a student, and GRADES/overview.html: pages/
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import labkit
from labkit.course.exercise import Exercise
from labkit.grading import pages
from labkit.grading.intake.labs import labs
from labkit.grading.model import REGRADE, Graded, Submission
from labkit.grading.results import manifest
from labkit.grading.results.manifest import Run
from labkit.grading.results.scores import Scores
from labkit.grading.results.tables import Tables
from labkit.grading.text import slug, write_whole

FORM = 1  # of the stored files; what another form holds is graded again


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


class Store:
    """The results of submissions, a file each in `out`/results.

    Only what this labkit has judged is found there, with the same seed and exercises.
    """

    def __init__(self, out: Path, seed: int, exercises: Iterable[Exercise]) -> None:
        self.out, self.seed = out, seed
        self.exercises = tuple(exercises)
        self.folder = out / "results"
        self._judged_by = _judged_by(seed, self.exercises)

    def put(self, graded: Graded) -> None:
        """Write a submission's results. A file of them is whole, or is not there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = {"judged_by": self._judged_by, "graded": graded.as_json()}
        write_whole(self._path(graded.submission.student), json.dumps(stored, indent=1))

    def get(self, student: str) -> Graded | None:
        """The results of a student's submission; None where there are none, or the file is damaged."""
        try:
            stored = json.loads(self._path(student).read_bytes())
            if stored["judged_by"] != self._judged_by:
                return None
            graded = Graded.from_json(stored["graded"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return graded if graded.submission.student == student else None

    def of(self, students: Iterable[str]) -> Iterator[Graded]:
        """The results of students, one after the other in the order of their names; some may have none."""
        return (graded for student in sorted(students) if (graded := self.get(student)))

    def is_done(self, submission: Submission) -> bool:
        """Whether the same files have been graded, and no result is to be graded again."""
        graded = self.get(submission.student)
        return (
            graded is not None
            and dict(graded.submission.files) == dict(submission.files)
            and all(result.state != REGRADE for result in graded.results)
        )

    def _path(self, student: str) -> Path:
        return self.folder / f"{slug(student)}.json"


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


def _judged_by(seed: int, exercises: Iterable[Exercise]) -> str:
    """A hash of all that results depend on besides the submission."""
    asked = [[each.id, each.points, each.given, [one.text for one in each.criteria]] for each in exercises]
    told = json.dumps([FORM, labkit.__version__, seed, sorted(asked)])
    return hashlib.sha256(told.encode()).hexdigest()
