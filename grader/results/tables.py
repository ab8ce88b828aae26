"""The tables of a graded class: grades.csv, gradebooks that Canvas and Moodle import, and lists to look at.

The forms are those of Canvas's lib/gradebook_importer.rb and lib/gradebook_exporter.rb, of Moodle's
grade/import/csv/classes/load_data.php and mod/assign/feedback/offline. UTF-8, lines end in \\n, and the same
results give the same bytes.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from typing import Any, Protocol

from grader.intake.labs import Lab, by_exercise, number, total
from grader.model import Graded
from grader.results.scores import Remark, first_unmet, lab_of, not_graded, regrades
from grader.text import one_line
from labkit.course.feedback import MET

GRADES = (
    *("student", "exercise", "title", "points", "of", "state", "criteria_met", "criteria"),
    *("first_unmet", "note", "judged", "by_hand", "handed_in"),
)
REGRADED = ("student", "exercise", "before", "now", "of", "why")
NOT_HANDED_IN = ("student", "name", "lab")
_AT_TIMES = ("to_regrade.csv", "regraded.csv", "not_handed_in.csv")  # there if they have a row
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "Points Possible"  # a row of Canvas's whose first cell holds this is no student's
# What Moodle's worksheet needs is Identifier, Grade and Last modified (grade); the rest is for the reader.
WORKSHEET = (
    *("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments"),
)
UNGRADED = "-"  # Moodle's own sign; an empty cell of a new grade item would count as 0

# A spreadsheet takes a cell that begins with one of these as a formula; the last are wide and small forms.
_FORMULA = (*"=+-@", "\t", "\r", *"＝＋－＠﹦﹢﹣﹫")
# Read with another separator than ours, a cell begins within a text.
_WITHIN = re.compile(r"([;,|\t]\s*[\"']*\s*)(?=[-=+@＝＋－＠﹦﹢﹣﹫])")


class Writer(Protocol):
    """What csv.writer gives."""

    def writerow(self, row: Iterable[Any], /) -> Any:
        """Write a row."""


class Tables:
    """Tables that are written row by row, submissions in the order of their students.

    A table appears in `out` once it is whole: when the `with` ends without an error.
    """

    def __init__(self, out: Path, labs: list[Lab]) -> None:
        self.out, self.labs = out, labs
        self.exercises = {exercise.id: exercise for lab in labs for exercise in lab.exercises}
        self.paths: list[Path] = []
        self._open = ExitStack()

    def __enter__(self) -> "Tables":
        self._grades = self._table("grades.csv", GRADES)
        self._canvas = self._table("gradebook-canvas.csv", [*CANVAS, *map(str, self.labs)])
        possible = [f"    {POINTS_POSSIBLE}", *[""] * (len(CANVAS) - 1), *(lab.points for lab in self.labs)]
        self._canvas.writerow(possible)
        self._moodle = self._table("gradebook-moodle.csv", ["Username", "Full name", *map(str, self.labs)])
        self._worksheets: dict[str, Writer] = {}
        self._at_times: dict[str, Writer] = {}
        for old in (*self.out.glob("moodle-worksheet-*.csv"), *(self.out / name for name in _AT_TIMES)):
            old.unlink(missing_ok=True)  # of an earlier run; there may be none now
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def add(self, graded: Graded) -> None:
        """Write a submission's rows."""
        for result in by_exercise(graded):
            exercise = self.exercises.get(result.exercise)
            met = sum(line.state == MET for line in result.lines)
            row = (
                cell(graded.submission.student),
                result.exercise,
                exercise.title if exercise else "",
                "" if result.points is None else number(result.points),
                result.most,
                result.state,
                met,
                len(result.lines),
                cell(first_unmet(result), 300),
                cell(result.note, 300),
                number(result.judged) if result.by_hand and result.judged is not None else "",
                cell(result.by_hand, 300),
                cell(graded.submission.handed_in.get(lab_of(result), "")),
            )
            self._grades.writerow(row)
            now = result.judged if result.by_hand else result.points
            if result.before is not None and now is not None:
                told = (number(result.before), number(now), result.most, cell(result.again, 300))
                student = cell(graded.submission.student)
                self._now_and_then("regraded.csv", REGRADED).writerow((student, result.exercise, *told))
        points = [total(graded, lab) for lab in self.labs]
        self._canvas.writerow(canvas_row(graded, points))
        self._moodle.writerow(moodle_row(graded, points))
        if "Identifier" in graded.submission.identity:
            for lab, own in zip(self.labs, points, strict=True):
                if own is not None:
                    self._worksheet(lab).writerow(worksheet_row(graded, lab, own))
        for remark in regrades(graded):
            self._regrade(remark)

    def leave_out(self, student: str) -> None:
        """Write down that a submission has no results."""
        self._regrade(not_graded(student))

    def absent(self, student: str, name: str, labs: Iterable[Lab]) -> None:
        """Write down that a student of the class has not handed in these labs."""
        for lab in labs:
            row = (cell(student), cell(name), lab.number)
            self._now_and_then("not_handed_in.csv", NOT_HANDED_IN).writerow(row)

    def _regrade(self, remark: Remark) -> None:
        table = self._now_and_then("to_regrade.csv", ("student", "exercise", "reason"))
        table.writerow((cell(remark.student), remark.exercise, cell(remark.text, 300)))

    def _now_and_then(self, name: str, header: Iterable[str]) -> Writer:
        """Return a table that is there only if it has a row."""
        if name not in self._at_times:
            self._at_times[name] = self._table(name, header)
        return self._at_times[name]

    def _worksheet(self, lab: Lab) -> Writer:
        if lab.number not in self._worksheets:
            name = f"moodle-worksheet-{lab.number}.csv"
            self._worksheets[lab.number] = self._table(name, WORKSHEET)
        return self._worksheets[lab.number]

    def _table(self, name: str, header: Iterable[str]) -> Writer:
        self.paths.append(self.out / name)
        writer = self._open.enter_context(_written(self.out / name))
        writer.writerow(header)
        return writer


def canvas_row(graded: Graded, points: list[float | None]) -> list[str]:
    """Return a student's row for Canvas, which looks for the ID first, then SIS User ID, SIS Login ID, and
    the name.
    """
    told, name = graded.submission.identity, graded.submission.student
    who = {"Student": name} | ({} if told else {"SIS Login ID": name}) | {**told}
    # with these words in its first cell the row would set what the labs are worth
    cells = [cell(who.get(column, "").replace(POINTS_POSSIBLE, "Points-Possible")) for column in CANVAS]
    return [*cells, *("" if each is None else number(each) for each in points)]


def moodle_row(graded: Graded, points: list[float | None]) -> list[str]:
    """Return a student's row for Moodle's gradebook, to be mapped from Username.

    That cell is never empty: where it is, Moodle gives the grades to the student of the row before.
    """
    told, name = graded.submission.identity, graded.submission.student
    # a name that the student chose may be another's username
    who = [cell(told.get("Username") or told.get("Identifier") or name), cell(told.get("Full name") or name)]
    return [*who, *(UNGRADED if each is None else number(each) for each in points)]


def worksheet_row(graded: Graded, lab: Lab, points: float) -> list[str]:
    """Return a student's row in the offline grading worksheet of this lab's assignment in Moodle."""
    told, name = graded.submission.identity, graded.submission.student
    own = {result.exercise: result for result in graded.results}
    lines = []
    for exercise in lab.exercises:
        if (result := own.get(exercise.id)) and result.points is not None:
            unmet = first_unmet(result)
            why = f": not met: {one_line(unmet)}" if unmet else ""
            why = f", by hand: {one_line(result.by_hand)}" if result.by_hand else why
            lines.append(f"{exercise.id} {number(result.points)} of {result.most}{why}")
    feedback = _apart("<br>".join(map(escape, lines)))  # Moodle takes it as HTML
    who = [cell(told["Identifier"]), cell(told.get("Full name") or name)]
    return [*who, number(points), str(lab.points), "", feedback]


def cell(text: str, most: int = 120) -> str:
    """Make a text fit for a cell: one line, cut to `most` characters, and no formula in any spreadsheet."""
    shown = _apart(one_line(text, most))
    return f"'{shown}" if text.startswith(_FORMULA) or shown.startswith(_FORMULA) else shown


def _apart(text: str) -> str:
    return _WITHIN.sub(r"\1'", text)


@contextmanager
def _written(path: Path) -> Iterator[Writer]:
    """Write a table that takes its place when it is whole."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        yield csv.writer(file, lineterminator="\n")
    part.replace(path)
