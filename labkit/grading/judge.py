"""One submission -> its results: merged into notebooks of our own, run by nbval, judged by the plug-in."""

import io
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
import pytest

from labkit.course import EXERCISES
from labkit.course.exercise import Exercise
from labkit.course.feedback import NEEDS_GPU
from labkit.grading import merge
from labkit.grading.model import GRADED, REGRADE, Answer, Graded, Result, Submission
from labkit.grading.plugin import Grading, Judgement
from labkit.grading.sandbox import LIMITS, Limits

MISSING = "There is no answer to this exercise in what was handed in."
NO_GPU = "What is left to judge takes a GPU, and this machine has none: grade again where there is one."


class GradingError(RuntimeError):
    "The grader itself has failed, through no fault of the submission."


def grade(
    submission: Submission, labs: Iterable[str], seed: int, isolation: str, limits: Limits = LIMITS
) -> Graded:
    """Judge what a submission has for the exercises of `labs`, such as 02.

    Nothing that a student wrote raises; raises GradingError or NoSandbox where this machine fails.
    """
    start = perf_counter()
    exercises = {id: each for id, each in EXERCISES.items() if id.partition(".")[0] in set(labs)}
    answers = {id: submission.answers.get(id, Answer(id, "", MISSING)) for id in exercises}
    given = {id: answer for id, answer in answers.items() if answer.source}
    judged = judge(given, exercises, seed, isolation, limits) if given else {}
    results = tuple(
        _result(exercise, answers[id], judged.get(id)) for id, exercise in sorted(exercises.items())
    )
    return Graded(submission, results, isolation, perf_counter() - start)


def judge(
    answers: Mapping[str, Answer],
    exercises: Mapping[str, Exercise],
    seed: int,
    isolation: str,
    limits: Limits = LIMITS,
) -> dict[str, Judgement]:
    "Run the answers under nbval, and judge each. Raises GradingError where pytest does not come to an end."
    plugin = Grading(exercises, seed, isolation, limits)
    plugin.judged |= {}
    with TemporaryDirectory(prefix="labkit-merged-") as folder:
        for number, notebook in enumerate(merge.notebooks(answers, list(exercises.values()))):
            nbformat.write(notebook, Path(folder, f"{number}.ipynb"))
        words = [folder, "--nbval", f"--nbval-cell-timeout={limits.cell_seconds:g}", *_ALONE, f"--rootdir={folder}"]
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told):
            code = pytest.main(words, plugins=[plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise GradingError(f"nbval stopped with {code!r}:\n{told.getvalue()[-4000:]}")
    missing = [id for id in answers if id not in plugin.judged]
    if missing:
        raise GradingError(f"nbval has not judged {', '.join(missing)}:\n{told.getvalue()[-4000:]}")
    return plugin.judged


# Neither a configuration nor another plug-in of this machine has a say; pytest prints nothing.
_ALONE = (
    *("--disable-plugin-autoload", "-p", "nbval.plugin", "-c", "/dev/null", "--noconftest"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:unraisableexception", "-s", "-q", "--color=no"),
)


def _result(exercise: Exercise, answer: Answer, judgement: Judgement | None) -> Result:
    told = {"exercise": exercise.id, "most": exercise.points, "note": answer.note, "source": answer.source}
    if judgement is None:
        return Result(state=GRADED, points=0.0, failure=answer.note or MISSING, **told)
    if judgement.feedback is None:
        return Result(state=REGRADE, points=None, failure=judgement.broken, seconds=judgement.seconds, **told)
    feedback = judgement.feedback
    needs_gpu = any(line.state == NEEDS_GPU for line in feedback.lines) and feedback.ok
    return Result(
        state=REGRADE if needs_gpu else GRADED,
        points=None if needs_gpu else exercise.points_of(feedback),
        lines=feedback.lines,
        failure=NO_GPU if needs_gpu else feedback.failure or "",
        seconds=judgement.seconds,
        **told,
    )
