"""Points by hand: GRADES/overrides.csv, which an instructor writes and labkit only reads, at every run.

    student,exercise,points,reason
    Jane Doe,02.1,2,"right, but for a printf that I told her to leave in"

The grader's own points stay with the results, so a row that is taken out gives them back.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from grader.intake.labs import order
from grader.model import GRADED, Graded, Result
from grader.results.written import Row, WrongTable, rows
from labkit.course.exercise import Exercise

FILE = "overrides.csv"
COLUMNS = ("student", "exercise", "points", "reason")


@dataclass(frozen=True)
class ByHand:
    """The points that an instructor gives for an exercise, and why."""

    points: float
    reason: str


Overrides = Mapping[tuple[str, str], ByHand]  # by student and exercise


def read(
    out: Path, students: Mapping[str, str], exercises: Mapping[str, Exercise], absent: Collection[str] = ()
) -> Overrides:
    """Return the points by hand in the folder of grades `out`; none where it has no such file.

    `students` has the student of each name by which one may be called, and `exercises` those that are graded,
    by id; `absent` are those of the class who have handed in nothing. Raises WrongTable, which names all that
    is wrong.
    """
    path = out / FILE
    if not path.exists():
        return {}
    found: dict[tuple[str, str], ByHand] = {}
    wrong: list[str] = []
    for row in rows(path, COLUMNS):
        mistakes = _mistakes(row, students, exercises, absent)
        key = students.get(row.cells["student"], ""), row.cells["exercise"]
        if not mistakes and key in found:
            mistakes = [f"line {row.line}, column student: {key[0]} has points for {key[1]} in a line above"]
        if not mistakes:
            found[key] = ByHand(_points(row.cells["points"]) or 0.0, row.cells["reason"])
        wrong += mistakes
    if wrong:
        raise WrongTable(path, wrong)
    return found


def applied(graded: Graded, overrides: Overrides) -> Graded:
    """Return a submission with the points that are given by hand in the place of the grader's."""
    student = graded.submission.student
    own = {exercise: given for (name, exercise), given in overrides.items() if name == student}
    if not own:
        return graded
    results = tuple(
        _given(each, own[each.exercise]) if each.exercise in own else each for each in graded.results
    )
    labs = {*graded.submission.labs, *(exercise.partition(".")[0] for exercise in own)}
    return replace(graded, results=results, submission=replace(graded.submission, labs=tuple(sorted(labs))))


def _given(result: Result, given: ByHand) -> Result:
    return replace(result, state=GRADED, points=given.points, judged=result.points, by_hand=given.reason)


def _mistakes(
    row: Row, students: Mapping[str, str], exercises: Mapping[str, Exercise], absent: Collection[str]
) -> list[str]:
    """Say what is wrong with each cell of a row."""
    student, id, points, reason = (row.cells[column] for column in COLUMNS)
    exercise, value = exercises.get(id), _points(points)
    wrong = []
    if student in absent:
        wrong.append(("student", f"{student} has handed in nothing; points for that are for your LMS"))
    elif student not in students:
        wrong.append(("student", f"nobody is called {student!r}{_close(student, students)}"))
    if exercise is None:
        known = ", ".join(sorted(exercises, key=order))
        wrong.append(("exercise", f"{id!r} is not graded here; those that are: {known}"))
    if value is None:
        wrong.append(("points", f"{points!r} is no number of points"))
    elif exercise and value > exercise.points:
        wrong.append(("points", f"{points} is more than the {exercise.points} points that {id} has"))
    if not reason:
        wrong.append(("reason", "it is empty; students read it on their page"))
    return [f"line {row.line}, column {column}: {what}" for column, what in wrong]


def _points(text: str) -> float | None:
    """Read points as spreadsheets write them: 1.5, or 1,5."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if value >= 0 else None  # nan is not


def _close(student: str, students: Collection[str]) -> str:
    close = get_close_matches(student, students, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
