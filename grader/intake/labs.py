"""The labs of a course, one per notebook: their titles, and what of them is graded."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from grader.model import REGRADE, Graded, Result
from labkit.course.exercise import Exercise
from labkit.course.notebooks.catalog import lesson


@dataclass(frozen=True)
class Lab:
    """A lab, such as 02: its title, and those of its exercises that are graded, in order."""

    number: str
    title: str
    exercises: tuple[Exercise, ...]

    @property
    def points(self) -> int:
        """Return what its graded exercises are worth together."""
        return sum(exercise.points for exercise in self.exercises)

    def __str__(self) -> str:
        return f"{self.number} {self.title}".strip()


def labs(exercises: Iterable[Exercise], solved: Path) -> list[Lab]:
    """Return the labs that the exercises belong to. `solved` is the folder of the solved notebooks, for the
    titles.
    """
    ordered = sorted(exercises, key=lambda exercise: order(exercise.id))
    found = []
    for number, own in groupby(ordered, lambda exercise: exercise.id.partition(".")[0]):
        paths = sorted(solved.glob(f"{number}_*.ipynb"))
        found.append(Lab(number, lesson(paths[0]).title if paths else "", tuple(own)))
    return found


def order(exercise: str) -> tuple[int, ...]:
    """Return the key to sort ids of exercises by: 02.10 comes after 02.9."""
    return tuple(int(part) for part in exercise.split("."))


def by_exercise(graded: Graded) -> list[Result]:
    """Return the results of a submission in the order of the exercises."""
    return sorted(graded.results, key=lambda result: order(result.exercise))


def source_of(graded: Graded, result: Result) -> str:
    """Return the answer that a result is about; "" where there is none."""
    answer = graded.submission.answers.get(result.exercise)
    return result.source or (answer.source if answer else "")


def total(graded: Graded, lab: Lab) -> float | None:
    """Return a submission's points in a lab; None where it is missing or not yet graded in full."""
    if lab.number not in graded.submission.labs:
        return None
    ids = {exercise.id for exercise in lab.exercises}
    results = [result for result in graded.results if result.exercise in ids]
    if any(result.state == REGRADE for result in results):
        return None
    return sum(result.points or 0.0 for result in results)


def number(points: float) -> str:
    """Write points: 2, 1.5, 0.67."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def worth(exercise: Exercise) -> list[float]:
    """Return the points of each criterion; those that the released cell already meets have none."""
    given, criteria = exercise.given, len(exercise.criteria)
    return [0.0] * given + [exercise.points / (criteria - given)] * (criteria - given)
