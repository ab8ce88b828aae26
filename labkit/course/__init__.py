"""The course: exercises and their checks.

The exercises of a notebook stand in exercises/lab_NN.py; each such file has a tuple EXERCISES.
"""

from importlib import import_module
from pkgutil import iter_modules

from labkit import magic
from labkit.core.errors import SimtError
from labkit.course import exercises
from labkit.course.exercise import ASKED, Answer, by_id
from labkit.course.feedback import Feedback

EXERCISES = by_id(
    exercise
    for module in sorted(found.name for found in iter_modules(exercises.__path__))
    for exercise in import_module(f"{exercises.__name__}.{module}").EXERCISES
)


class NoAnswer(SimtError):
    """No cell has been run that answers an exercise."""


def answer(exercise: str) -> Answer:
    """Return what the last cell of `%%cuda`, `%%c` or `%%answer` with the exercise's id has made.

    A kernel is for this machine's device, like any of `%%cuda`; a C function is a `CFunction`. Raises
    NoAnswer if there is none.
    """
    kind = EXERCISES[_known(exercise)].magic
    if exercise not in magic.answers:
        raise NoAnswer(
            f"There is no {ASKED[kind].removeprefix('a ')} for {exercise} yet. "
            f"Run the cell that begins with %%{kind} {exercise} first."
        )
    return magic.answers[exercise]


def check(exercise: str, kernel: Answer | None = None) -> Feedback:
    """Judge the answer to an exercise, or `kernel` (a function, where it asks for one) in its place.

    A student's mistake is told, never raised. Raises ValueError where there is no such exercise.
    """
    chosen = EXERCISES[_known(exercise)]
    try:
        return chosen.judge(answer(exercise) if kernel is None else kernel)
    except NoAnswer as nothing:
        return chosen.not_judged("the answer cell has run", str(nothing))


def _known(exercise: str) -> str:
    if exercise not in EXERCISES:
        raise ValueError(f"there is no exercise {exercise!r}. Choose one of {', '.join(sorted(EXERCISES))}.")
    return exercise
