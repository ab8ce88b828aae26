"""Keep results: GRADES/results/<slug>.json is written as soon as a submission is graded."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import labkit
from labkit.course.exercise import Exercise
from labkit.grading.model import REGRADE, Graded, Submission
from labkit.grading.text import slug, write_whole

FORM = 2  # of the stored files; what another form holds is graded again


class Store:
    """The results of submissions, one file per submission in `out`/results.

    Only what this labkit has judged is found there, with the same seed and exercises.
    """

    def __init__(self, out: Path, seed: int, exercises: Iterable[Exercise]) -> None:
        self.out, self.seed = out, seed
        self.exercises = tuple(exercises)
        self.folder = out / "results"
        self._judged_by = _judged_by(seed, self.exercises)

    def put(self, graded: Graded) -> None:
        """Write a submission's results; a file of them is whole or missing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = {"judged_by": self._judged_by, "graded": graded.as_json()}
        write_whole(self._path(graded.submission.student), json.dumps(stored, indent=1))

    def get(self, student: str) -> Graded | None:
        """Return the results of a student's submission; None where there are none, or the file is damaged."""
        try:
            stored = json.loads(self._path(student).read_bytes())
            if stored["judged_by"] != self._judged_by:
                return None
            graded = Graded.from_json(stored["graded"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return graded if graded.submission.student == student else None

    def of(self, students: Iterable[str]) -> Iterator[Graded]:
        """Yield the results of students in the order of their names; some may have none."""
        return (graded for student in sorted(students) if (graded := self.get(student)))

    def is_done(self, submission: Submission) -> bool:
        """Say whether the same files have been graded, of whom they are now, and nothing is to be graded
        again.
        """
        graded = self.get(submission.student)
        return (
            graded is not None
            and dict(graded.submission.files) == dict(submission.files)
            and dict(graded.submission.identity) == dict(submission.identity)
            and all(result.state != REGRADE for result in graded.results)
        )

    def _path(self, student: str) -> Path:
        return self.folder / f"{slug(student)}.json"


def _judged_by(seed: int, exercises: Iterable[Exercise]) -> str:
    """Hash all that results depend on besides the submission."""
    asked = [[each.id, each.points, each.given, [one.text for one in each.criteria]] for each in exercises]
    told = json.dumps([FORM, labkit.__version__, seed, sorted(asked)])
    return hashlib.sha256(told.encode()).hexdigest()
