"""The course: exercises and their checks.

The exercises of a notebook stand in exercises_NN.py; each such file has a tuple EXERCISES.
"""

from typing import Any

from labkit import magic
from labkit.course import exercises_00, exercises_02, exercises_03
from labkit.course.exercise import by_id
from labkit.course.feedback import FAILED, Feedback, Line
from labkit.errors import SimtError

EXERCISES = by_id([*exercises_00.EXERCISES, *exercises_02.EXERCISES, *exercises_03.EXERCISES])


class NoAnswer(SimtError):
    "No kernel has been compiled for an exercise."


def answer(exercise: str) -> Any:
    """Kernel that the last `%%cuda <exercise>` cell compiled. Raises NoAnswer if there is none.

    It is for this machine's device, like any kernel of `%%cuda`.
    """
    _known(exercise)
    if exercise not in magic.answers:
        raise NoAnswer(
            f"There is no kernel for {exercise} yet. Run the cell that begins with %%cuda {exercise} first."
        )
    return magic.answers[exercise]


def check(exercise: str, kernel: Any = None) -> Feedback:
    """Judge the answer to an exercise, or another `kernel`. A student's mistake is told, never raised.

    Raises ValueError where there is no such exercise.
    """
    chosen = EXERCISES[_known(exercise)]
    try:
        return chosen.judge(answer(exercise) if kernel is None else kernel)
    except NoAnswer as nothing:
        return Feedback(
            f"{exercise} {chosen.title}", (Line("the answer cell compiles", FAILED),), str(nothing)
        )


def _known(exercise: str) -> str:
    if exercise not in EXERCISES:
        raise ValueError(f"there is no exercise {exercise!r}. Choose one of {', '.join(sorted(EXERCISES))}.")
    return exercise
