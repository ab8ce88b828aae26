"""The course: exercises and their checks.

The exercises of a notebook stand in exercises_NN.py; each such file has a tuple EXERCISES.
"""

from typing import Any

from labkit import magic
from labkit.course import exercises_00, exercises_01, exercises_02, exercises_03
from labkit.course.exercise import by_id
from labkit.course.feedback import Feedback
from labkit.errors import SimtError

EXERCISES = by_id(
    exercise
    for notebook in (exercises_00, exercises_01, exercises_02, exercises_03)
    for exercise in notebook.EXERCISES
)


class NoAnswer(SimtError):
    "No kernel or C function has been compiled for an exercise."


def answer(exercise: str) -> Any:
    """What the last `%%cuda <exercise>` or `%%c <exercise>` cell compiled. Raises NoAnswer if there is none.

    A kernel is for this machine's device, like any of `%%cuda`; a C function is a `CFunction`.
    """
    kind = EXERCISES[_known(exercise)].magic
    if exercise not in magic.answers:
        raise NoAnswer(
            f"There is no {'C function' if kind == 'c' else 'kernel'} for {exercise} yet. "
            f"Run the cell that begins with %%{kind} {exercise} first."
        )
    return magic.answers[exercise]


def check(exercise: str, kernel: Any = None) -> Feedback:
    """Judge the answer to an exercise, or `kernel` (a CFunction, where it asks for one) in its place.

    A student's mistake is told, never raised. Raises ValueError where there is no such exercise.
    """
    chosen = EXERCISES[_known(exercise)]
    try:
        return chosen.judge(answer(exercise) if kernel is None else kernel)
    except NoAnswer as nothing:
        return chosen.not_judged("the answer cell compiles", str(nothing))


def _known(exercise: str) -> str:
    if exercise not in EXERCISES:
        raise ValueError(f"there is no exercise {exercise!r}. Choose one of {', '.join(sorted(EXERCISES))}.")
    return exercise
