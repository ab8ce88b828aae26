"""One submission -> its results: merged into notebooks of our own, run by nbval, judged by the plug-in."""

import io
import os
from collections.abc import Iterable, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
import pytest

from grader.intake import merge
from grader.judging.clock import Clock
from grader.judging.plugin import Grading, Judgement
from grader.model import GRADED, REGRADE, Answer, Graded, Result, Submission
from grader.sandbox import native, process
from grader.sandbox.limits import LIMITS, Limits
from labkit.course import EXERCISES
from labkit.course.exercise import Criterion, Exercise
from labkit.course.notebooks import catalog
from labkit.course.setups import setups

MISSING = "There is no answer to this exercise in what was handed in."
NO_GPU = "The remaining criteria need a GPU, and this machine has none: grade again on one that has."


class GradingError(RuntimeError):
    """The grader itself has failed, through no fault of the submission."""


def grade(
    submission: Submission, labs: Iterable[str], seed: int, isolation: str, limits: Limits = LIMITS
) -> Graded:
    """Judge what a submission has for the exercises of `labs`, such as 02.

    Nothing that a student wrote raises; raises GradingError or NoSandbox where this machine fails.
    """
    start = perf_counter()
    exercises = asked(labs)
    answers = {id: submission.answers.get(id, Answer(id, "", MISSING)) for id in exercises}
    given = {id: answer for id, answer in answers.items() if answer.source and not answer.open}
    judged = judge(given, exercises, seed, isolation, limits) if given else {}
    results = tuple(
        _result(exercise, answers[id], judged.get(id)) for id, exercise in sorted(exercises.items())
    )
    return Graded(submission, results, isolation, perf_counter() - start)


def asked(labs: Iterable[str]) -> dict[str, Exercise]:
    """Return the exercises of `labs`, such as 02, with the instructor's hidden checks, by id."""
    chosen, hidden = set(labs), _course()[1]
    return {
        id: replace(each, criteria=each.criteria + hidden.get(id, ()))
        for id, each in EXERCISES.items()
        if id.partition(".")[0] in chosen
    }


def judge(
    answers: Mapping[str, Answer],
    exercises: Mapping[str, Exercise],
    seed: int,
    isolation: str,
    limits: Limits = LIMITS,
) -> dict[str, Judgement]:
    """Run the answers under nbval, and judge each. Raises GradingError where pytest does not come to
    an end.
    """
    notebooks, refused = merge.notebooks(answers, list(exercises.values()), _course()[0])
    clock = Clock(
        limits.lab_seconds * len({id.partition(".")[0] for id in answers}), "Judging this submission"
    )
    plugin = Grading(exercises, seed, isolation, clock, limits)
    for id, why in refused.items():
        plugin.judged[id] = Judgement(exercises[id].not_judged("the answer cell can be run", why))
    if not notebooks:
        return plugin.judged
    if any(exercises[id].magic == "c" for id in answers):
        native.prepare()
    with TemporaryDirectory(prefix=process.prefix(os.getpid())) as folder:
        for number, notebook in enumerate(notebooks):
            nbformat.write(notebook, Path(folder, f"{number}.ipynb"))
        words = [
            folder,
            "--nbval",
            f"--nbval-cell-timeout={limits.cell_seconds:g}",
            *_ALONE,
            f"--rootdir={folder}",
        ]
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told), closing(plugin.turns):
            code = pytest.main(words, plugins=[plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise GradingError(f"nbval stopped with {code!r}:\n{told.getvalue()[-4000:]}")
    missing = [id for id in answers if id not in plugin.judged]
    if missing:
        raise GradingError(f"nbval has not judged {', '.join(missing)}:\n{told.getvalue()[-4000:]}")
    return plugin.judged


@cache
def _course() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[Criterion, ...]]]:
    """Return what answers in Python rely on, and the hidden checks, by exercise of all solved notebooks."""
    relied_on: dict[str, tuple[str, ...]] = {}
    hidden: dict[str, tuple[Criterion, ...]] = {}
    for solved in catalog.notebooks(catalog.shipped() / "solutions"):
        relied_on |= setups(solved)
        hidden |= merge.hidden_criteria(solved)
    return relied_on, hidden


# Neither a configuration nor another plug-in of this machine has a say; pytest prints nothing.
_ALONE = (
    *("--disable-plugin-autoload", "-p", "nbval.plugin", "-c", "/dev/null", "--noconftest"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:unraisableexception"),
    *("-s", "-q", "--color=no"),
)


def _result(exercise: Exercise, answer: Answer, judgement: Judgement | None) -> Result:
    told = partial(Result, exercise.id, most=exercise.points, note=answer.note, source=answer.source)
    if answer.open:
        return told(state=REGRADE, points=None, failure=answer.open)
    if judgement is None:
        return told(state=GRADED, points=0.0, failure=answer.note or MISSING)
    told = partial(told, seconds=judgement.seconds, inside=judgement.inside)
    again = partial(told, state=REGRADE, points=None)
    feedback = judgement.feedback
    if feedback is None:
        return again(failure=judgement.broken)
    if feedback.ok and feedback.is_open:
        return again(lines=feedback.lines, failure=NO_GPU)
    points = exercise.points_of(feedback)
    failure = feedback.failure or ""
    return told(state=GRADED, points=points, lines=feedback.lines, failure=failure)
