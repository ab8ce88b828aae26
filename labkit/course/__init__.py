"""The course: exercises and their checks.

The exercises of a notebook stand in exercises/lab_NN.py; each such file has a tuple EXERCISES.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from labkit import magic
from labkit.course import exercises, progress, stale_cell
from labkit.course.check_progress import step_by_step
from labkit.course.exercise import ASKED, Answer, Exercise, by_id
from labkit.course.feedback import Feedback, Score
from simt.common.errors import SimtError

EXERCISES = by_id(
    exercise
    for module in sorted(found.name for found in iter_modules(exercises.__path__))
    for exercise in import_module(f"{exercises.__name__}.{module}").EXERCISES
)


AS_IT_RAN = "the answer cell is as it ran"  # a criterion: what is checked is what stands in the cell
BY_ITSELF = "the answer cell runs by itself"  # likewise: the grader has no other


class NoAnswer(SimtError):
    """No cell has been run that answers an exercise, or it has failed.

    `asked` is what the cell should have done, as a criterion.
    """

    def __init__(self, message: str, asked: str) -> None:
        super().__init__(message)
        self.asked = asked


def answer(exercise: str) -> Answer:
    """Return what the last cell of `%%cuda`, `%%c` or `%%answer` with the exercise's id has made.

    A kernel is for this machine's device, like any of `%%cuda`; a C function is a `CFunction`. Raises
    NoAnswer if there is none.
    """
    kind = EXERCISES[_known(exercise)].magic
    if exercise not in magic.answers:
        run, wanted = magic.runs.get(exercise), ASKED[kind].removeprefix("a ")
        if run is not None and run.failure:
            raise NoAnswer(
                f"The cell of {exercise} has run and left no {wanted}:\n{run.failure}\n"
                "Mend the cell and run it again, then check.",
                "the answer cell has run without an error",
            )
        raise NoAnswer(
            f"There is no {wanted} for {exercise} yet. "
            f"Run the cell that begins with %%{kind} {exercise} first.",
            "the answer cell has run",
        )
    return magic.answers[exercise]


def check(exercise: str, kernel: Answer | None = None) -> Feedback:
    """Judge the answer to an exercise, or `kernel` (a function, where it asks for one) in its place.

    A student's mistake is told, never raised. Raises ValueError where there is no such exercise.
    """
    chosen = EXERCISES[_known(exercise)]
    if kernel is not None:
        with step_by_step(exercise) as step:
            return chosen.judge(kernel, step=step)
    from labkit.course import alone  # imported here: it imports this package

    run = magic.runs.get(exercise)
    line = stale_cell.changed_line(run) if run else None
    if line is not None:
        told = f"The cell of {exercise} was changed after it ran (line {line}). Run it again, then check."
        return chosen.not_judged(AS_IT_RAN, told)
    try:
        judged = alone.as_graded(chosen, answer(exercise))
        with step_by_step(exercise) as step:
            feedback = chosen.judge(judged, step=step)
        if feedback.failure:
            feedback = replace(feedback, failure=feedback.failure + alone.missing(feedback.failure))
    except NoAnswer as nothing:
        feedback = chosen.not_judged(nothing.asked, str(nothing))
    except alone.NotAlone as why:
        feedback = chosen.not_judged(BY_ITSELF, str(why))
    return replace(feedback, score=_noted(chosen, feedback))


def _noted(exercise: Exercise, feedback: Feedback) -> Score:
    """Keep what the student's own answer has earned; return it in words, with what comes next."""
    from labkit.course import progress_panel  # imported here: it imports this package

    progress.record(exercise.id, progress.Best(exercise.share_of(feedback), feedback.ok))
    points, total = exercise.points_of(feedback), f"{exercise.points} point{'s' * (exercise.points != 1)}"
    words = f"{points:g} of {total}"
    best = progress.load().best
    most = round(exercise.points * best[exercise.id].share, 2) if exercise.id in best else 0
    words += f" (your best: {most:g})" * (most > points)
    progress_panel.update()
    return progress_panel.following(exercise, words, best) if feedback.ok else Score(words)


def _known(exercise: str) -> str:
    if exercise not in EXERCISES:
        raise ValueError(f"there is no exercise {exercise!r}. Choose one of {', '.join(sorted(EXERCISES))}.")
    return exercise
