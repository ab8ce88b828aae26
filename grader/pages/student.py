"""A student's page: points, and of each exercise what was asked, what they wrote, what it meets."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from grader.intake.labs import Lab, number, source_of, total, worth
from grader.model import REGRADE, Graded, Result
from grader.pages import chart
from grader.pages.listing import listing, named_lines
from grader.pages.template import render
from grader.results.scores import Scores, is_full
from grader.text import block
from labkit.course.exercise import Exercise
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED

MARKS = {MET: "✓", FAILED: "✗", NOT_JUDGED: "·", NEEDS_GPU: "○"}
FAILURE_LINES = 60
FEWEST = 3  # students of whom a median is shown: of two, each would know the other's points


@dataclass(frozen=True)
class Judged:
    """A criterion: mark and state, its text, and the points that it carries, in words."""

    mark: str
    state: str
    text: str
    worth: str


@dataclass(frozen=True)
class Answered:
    """An exercise as the page shows it; `left_out` and `cut` say what of source and failure is not shown."""

    exercise: Exercise
    result: Result
    task: Markup
    source: Markup
    left_out: str
    criteria: list[Judged]
    failure: str
    cut: str

    @property
    def waits(self) -> bool:
        """Say whether it will be graded again."""
        return self.result.state == REGRADE

    @property
    def is_full(self) -> bool:
        """Say whether it has all its points."""
        return self.result.points is not None and is_full(self.result.points, self.result.most)


@dataclass(frozen=True)
class Part:
    """A lab of the page: the student's points, or None while they are not final, and the chart with
    its title.
    """

    lab: Lab
    points: float | None
    answered: list[Answered]
    finding: str
    chart: Markup


def page(graded: Graded, scores: Scores, tasks: Mapping[str, Markup]) -> str:
    """Return the HTML of a student's page. `scores` are the class's, `tasks` what the exercises ask."""
    handed_in = [lab for lab in scores.labs if lab.number in graded.submission.labs]
    parts = [part for lab in handed_in if (part := _part(graded, lab, scores, tasks)).answered]
    return render(
        "student.html",
        student=graded.submission.student,
        problems=graded.submission.problems,
        parts=parts,
        missing=[lab for lab in scores.labs if lab not in handed_in],
        points=sum(part.points or 0.0 for part in parts),
        most=sum(part.lab.points for part in parts),
        waits=any(part.points is None for part in parts),
    )


def _part(graded: Graded, lab: Lab, scores: Scores, tasks: Mapping[str, Markup]) -> Part:
    results = {result.exercise: result for result in graded.results}
    answered, bars = [], []
    for exercise in lab.exercises:
        if result := results.get(exercise.id):
            answered.append(_answered(graded, exercise, result, tasks))
            own = scores.exercises[exercise.id]
            median = own.median if own.students >= FEWEST else None
            bars.append(chart.Bar(exercise.id, result.points, median, result.most))
    points = total(graded, lab)
    finding = _finding(bars)
    return Part(lab, points, answered, finding, chart.points(bars, finding) if bars else Markup(""))


def _finding(bars: list[chart.Bar]) -> str:
    """Say in a sentence what the chart shows."""
    final = [bar for bar in bars if bar.points is not None]
    compared = [bar for bar in final if bar.median is not None]
    if not compared:
        full = sum(is_full(bar.points or 0.0, bar.most) for bar in final)
        return f"All points in {full} of {_exercises(len(bars))}"
    level = sum((bar.points or 0.0) > (bar.median or 0.0) - 1e-6 for bar in compared)
    return f"At or above the class's median in {level} of {_exercises(len(compared))}"


def _exercises(count: int) -> str:
    return f"{count} exercise" + "s" * (count != 1)


def _answered(graded: Graded, exercise: Exercise, result: Result, tasks: Mapping[str, Markup]) -> Answered:
    source = source_of(graded, result)
    failure, cut = block(result.failure.strip("\n"), FAILURE_LINES)
    shown, left_out = listing(source, exercise.magic, named_lines(failure)) if source else (Markup(""), "")
    task = tasks.get(exercise.id, Markup(""))
    return Answered(exercise, result, task, shown, left_out, _criteria(exercise, result), failure, cut)


def _criteria(exercise: Exercise, result: Result) -> list[Judged]:
    """Return the criteria with their points; a line that is none of them, as for a wrong magic, carries
    nothing.
    """
    shares = worth(exercise)
    carried = (
        [_carried(share) for share in shares]
        if len(shares) == len(result.lines)
        else [""] * len(result.lines)
    )
    return [
        Judged(MARKS.get(line.state, "·"), line.state, str(line), words)
        for line, words in zip(result.lines, carried, strict=True)
    ]


def _carried(points: float) -> str:
    if not points:
        return "no points: the cell as you got it meets this"
    return f"{number(points)} point" + "s" * (number(points) != "1")
