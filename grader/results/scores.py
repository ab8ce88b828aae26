"""A class in numbers: how it did in each exercise and lab. Its size does not grow with the class."""

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from grader.intake.labs import Lab, by_exercise, number, source_of, total
from grader.model import REGRADE, Graded, Result
from grader.text import one_line
from labkit.course.feedback import FAILED

MOST_REMARKS = 500  # listed in an overview
LONGEST_REMARK = 300  # characters
ERRORS = "errors.txt"  # for instructors: the grader's own errors, with their tracebacks


@dataclass(frozen=True)
class Remark:
    """Something to look at: a student, an exercise or nothing, and a sentence."""

    student: str
    exercise: str
    text: str


@dataclass
class Remarks:
    """The first MOST_REMARKS remarks, and the number of all."""

    listed: list[Remark] = field(default_factory=list)
    count: int = 0

    def add(self, remark: Remark) -> None:
        """Count a remark, and keep it while there is room."""
        self.count += 1
        if len(self.listed) < MOST_REMARKS:
            self.listed.append(remark)


@dataclass
class ExerciseScores:
    """How those who handed in the lab did in an exercise of `most` points.

    `points` counts the students by their points, `unmet` by the first criterion that they do not meet;
    `missing` have no answer, and `regrade` have no points yet. Ask for the rest when all are counted.
    """

    most: int
    points: Counter[float] = field(default_factory=Counter)
    unmet: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    regrade: int = 0

    def add(self, result: Result, source: str) -> None:
        """Count the result of an answer."""
        if result.points is None:
            self.regrade += 1
            return
        self.points[result.points] += 1
        if not source:
            self.missing += 1
        elif first := first_unmet(result):
            self.unmet[one_line(first)] += 1

    @cached_property
    def students(self) -> int:
        """Return how many students have points."""
        return self.points.total()

    @cached_property
    def mean_share(self) -> float:
        """Return the mean of the points, as a share of the most."""
        return sum(points * count for points, count in self.points.items()) / (self.most * self.students)

    @cached_property
    def median(self) -> float:
        """Return the median of the points."""
        return statistics.median(self.points.elements())

    @cached_property
    def full_share(self) -> float:
        """Return the share of the students with all points."""
        return (
            sum(count for points, count in self.points.items() if is_full(points, self.most)) / self.students
        )

    @cached_property
    def commonest(self) -> tuple[str, int] | None:
        """Return the criterion that most students fail, and how many do; on a tie the first by its text."""
        return min(self.unmet.items(), key=lambda each: (-each[1], each[0]), default=None)


@dataclass
class Scores:
    """What is to be told of a class. `totals` counts the students of a lab by their points in it."""

    labs: list[Lab]
    exercises: dict[str, ExerciseScores] = field(init=False)
    totals: dict[str, Counter[float]] = field(init=False)
    students: int = 0
    waiting: int = 0  # students with something to be graded again
    absent: int = 0  # students of the roster who have handed in nothing
    isolation: set[str] = field(default_factory=set)
    notes: Remarks = field(default_factory=Remarks)
    regrades: Remarks = field(default_factory=Remarks)

    def __post_init__(self) -> None:
        self.exercises = {each.id: ExerciseScores(each.points) for lab in self.labs for each in lab.exercises}
        self.totals = {lab.number: Counter() for lab in self.labs}

    def add(self, graded: Graded) -> None:
        """Count a submission."""
        submission = graded.submission
        self.students += 1
        self.isolation.add(graded.isolation)
        for result in graded.results:
            if result.exercise in self.exercises and lab_of(result) in submission.labs:
                self.exercises[result.exercise].add(result, source_of(graded, result))
        for lab in self.labs:
            if (points := total(graded, lab)) is not None:
                self.totals[lab.number][round(points, 6)] += 1  # sums of thirds, in any order
        for remark in notes(graded):
            self.notes.add(remark)
        waiting = list(regrades(graded))
        self.waiting += bool(waiting)
        for remark in waiting:
            self.regrades.add(remark)

    def leave_out(self, student: str) -> None:
        """Count a submission that has not been graded at all."""
        self.students += 1
        self.waiting += 1
        self.regrades.add(not_graded(student))


def notes(graded: Graded) -> Iterable[Remark]:
    """Return what was odd about a submission; missing answers are reported elsewhere."""
    student = graded.submission.student
    for problem in graded.submission.problems:
        yield Remark(student, "", one_line(problem, LONGEST_REMARK))
    for result in by_exercise(graded):
        if result.note and source_of(graded, result):
            yield Remark(student, result.exercise, one_line(result.note, LONGEST_REMARK))
        if result.by_hand:
            instead = "nothing yet" if result.judged is None else f"the grader's {number(result.judged)}"
            told = f"{number(result.points or 0)} by hand in place of {instead}: {result.by_hand}"
            yield Remark(student, result.exercise, one_line(told, LONGEST_REMARK))
        if result.inside and result.state != REGRADE:
            yield Remark(student, result.exercise, f"judging it ended in an error: {ERRORS} has it")


def regrades(graded: Graded) -> Iterable[Remark]:
    """Return which exercises of a submission have to be graded again, and why."""
    for result in by_exercise(graded):
        if result.state == REGRADE:
            reason = one_line(result.failure, LONGEST_REMARK) or "no reason is known"
            yield Remark(graded.submission.student, result.exercise, reason)


def not_graded(student: str) -> Remark:
    """Remark that a submission has no results, as the run was stopped."""
    return Remark(student, "", "not graded: the run ended before its turn; --resume grades it")


def first_unmet(result: Result) -> str:
    """Return the text of the first criterion that failed; "" if none has."""
    return next((line.text for line in result.lines if line.state == FAILED), "")


def lab_of(result: Result) -> str:
    """Return the lab that a result belongs to, such as 02."""
    return result.exercise.partition(".")[0]


def is_full(points: float, most: float) -> bool:
    """Say whether these are all points; shares of them need not add up to the last bit."""
    return points > most - 1e-6
