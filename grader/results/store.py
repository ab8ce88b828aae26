"""Keep results: GRADES/results/<slug>.json is written as soon as a submission is graded."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.model import REGRADE, Answer, Graded, Result, Submission
from grader.results.judged_by import changed, judged_by
from grader.text import slug, write_whole
from labkit.course.exercise import Exercise

FORM = 3  # of the stored files; what another form holds is graded again
IS_NEW = "it was not graded before"
STALE = "To be graded again: {}."


class Store:
    """The results of submissions, one file per submission in `out`/results.

    What was judged with another seed is not found there. A result whose exercise is judged by something else
    now is found without its points, to be graded again.
    """

    def __init__(self, out: Path, seed: int, exercises: Iterable[Exercise]) -> None:
        self.out, self.seed = out, seed
        self.exercises = tuple(exercises)
        self.folder = out / "results"
        self._judged_by = judged_by(self.exercises)
        self._most = {exercise.id: exercise.points for exercise in self.exercises}
        self.asked = frozenset(self._most)

    def put(self, graded: Graded) -> None:
        """Write a submission's results; a file of them is whole or missing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = {
            "form": FORM,
            "seed": self.seed,
            "judged_by": self._judged_by,
            "graded": graded.as_json(),
        }
        write_whole(self._path(graded.submission.student), json.dumps(stored, indent=1))

    def get(self, student: str) -> Graded | None:
        """Return the results of a student's submission; None where there are none, or the file is damaged."""
        try:
            stored = json.loads(self._path(student).read_bytes())
            if (stored["form"], stored["seed"]) != (FORM, self.seed):
                return None
            graded = self._current(Graded.from_json(stored["graded"]), dict(stored["judged_by"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return graded if graded.submission.student == student else None

    def of(self, students: Iterable[str]) -> Iterator[Graded]:
        """Yield the results of students in the order of their names; some may have none."""
        return (graded for student in sorted(students) if (graded := self.get(student)))

    def students(self) -> list[str]:
        """Return the names of all submissions that have results here."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(json.loads(path.read_bytes())["graded"]["submission"]["student"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
        return [student for student in found if self.get(student)]

    def pending(self, submission: Submission) -> dict[str, str]:
        """Return which exercises of a submission are still to be judged, and why where they were before."""
        graded = self.get(submission.student)
        if graded is None or dict(graded.submission.files) != dict(submission.files):
            return {exercise.id: "" for exercise in self.exercises}
        return {each.exercise: each.again for each in graded.results if each.state == REGRADE}

    def is_done(self, submission: Submission) -> bool:
        """Say whether the same files have been graded by the same rules, and nothing is left to do."""
        return not self.pending(submission)

    def refresh(self, submission: Submission) -> None:
        """Keep what else is known of a submission that is done: whose it is, and when it was handed in."""
        graded = self.get(submission.student)
        if graded and graded.submission != submission:
            self.put(replace(graded, submission=submission))

    def add(self, submission: Submission, graded: Graded, exercises: Iterable[str], reason: str) -> Graded:
        """Store that `exercises` of a submission have been judged now, beside what there is of the others.

        `reason` says why those were judged again that had points. Returns what is stored.
        """
        before = self.get(submission.student)
        if before and dict(before.submission.files) != dict(submission.files):
            before = None
        old = {each.exercise: each for each in before.results} if before else {}
        now, judged = set(exercises), []
        for result in graded.results:
            last = old.get(result.exercise)
            if result.exercise not in now and last:
                judged.append(last)
            elif last and last.state == REGRADE and last.before is not None:
                judged.append(replace(result, before=last.before, again=last.again))
            elif last and last.points is not None:
                judged.append(replace(result, before=last.points, again=reason))
            else:
                judged.append(result)
        kept = replace(graded, submission=submission, results=tuple(judged))
        self.put(kept)
        return kept

    def has(self, student: str) -> bool:
        """Say whether there is a file of a student, even one that cannot be read."""
        return self._path(student).exists()

    def remove(self, student: str) -> None:
        """Remove what is stored of a student."""
        self._path(student).unlink(missing_ok=True)

    def _current(self, graded: Graded, judged_by: dict[str, Any]) -> Graded:
        """Return the results of today's exercises, without the points that other rules gave."""
        results = []
        for last in graded.results:
            if now := self._judged_by.get(last.exercise):
                why = changed(judged_by.get(last.exercise, {}), now)
                results.append(_stale(last, why, self._most[last.exercise]) if why else last)
        for exercise in self.exercises:
            if exercise.id not in judged_by:
                answer = graded.submission.answers.get(exercise.id, Answer(exercise.id, ""))
                told = Result(
                    exercise.id, REGRADE, None, exercise.points, note=answer.note, source=answer.source
                )
                results.append(replace(told, failure=STALE.format(IS_NEW)))
        return replace(graded, results=tuple(results))

    def _path(self, student: str) -> Path:
        return self.folder / f"{slug(student)}.json"


def _stale(result: Result, why: str, most: int) -> Result:
    """Return a result that is to be judged again, with the points that it had."""
    before = result.before if result.state == REGRADE else result.points
    return replace(
        result, state=REGRADE, points=None, most=most, failure=STALE.format(why), again=why, before=before
    )
