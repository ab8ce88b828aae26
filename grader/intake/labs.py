"""The labs of a course, each the exercises whose ids begin alike: their titles, and what of them is graded.

A lab is what a class is graded by, from one edition of the course to the next. Its exercises may stand in
several notebooks, and move from one to another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from grader.model import REGRADE, Graded, Result
from labkit.course.exercise import Exercise
from labkit.course.notebooks import catalog


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
    titles: those of the notebooks in which the lab's exercises stand.
    """
    ordered = sorted(exercises, key=lambda exercise: order(exercise.id))
    lessons = [catalog.lesson(path) for path in sorted(solved.glob("*.ipynb"))]
    found = []
    for number, group in groupby(ordered, lambda exercise: exercise.id.partition(".")[0]):
        own = tuple(group)
        titles = [each.title for each in lessons if any(exercise in own for exercise in each.exercises)]
        found.append(Lab(number, " · ".join(titles), own))
    return found


@cache
def labs_of(notebook: str) -> frozenset[str]:
    """Return the labs whose exercises stand in a notebook, by its number: 09 for 05b.

    A number that no notebook has now is that of a lab: in earlier editions each was one notebook.
    """
    for path in catalog.notebooks(catalog.shipped()):
        if path.name.lower().startswith(f"{notebook}_"):
            exercises = catalog.lesson(path).exercises
            return frozenset(exercise.id.partition(".")[0] for exercise in exercises)
    return frozenset({notebook})


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
