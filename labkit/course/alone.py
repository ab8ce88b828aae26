"""An answer in Python as the grader has it: its own cell and the course's imports, and no other cell.

In the notebook a function sees all that other cells have made. The grader runs the answer cell alone, so a
check does that, too, and says what is missing.
"""

import re
from functools import cache
from typing import Any

from IPython.utils.capture import capture_output

from labkit import magic
from labkit.course.exercise import Answer, Exercise
from labkit.course.notebooks import catalog
from labkit.course.setups import needed, setups
from labkit.magic import CellRun
from simt.common import cell
from simt.common.errors import SimtError

_UNKNOWN = re.compile(r"\bname '(\w+)' is not defined")
_OF_IPYTHON = ("get_ipython", "display")  # every kernel has these


class NotAlone(SimtError):
    """The cell of an answer does not run by itself; the message tells the student why."""


def as_graded(exercise: Exercise, answer: Answer) -> Answer:
    """Return an answer as the grader has it. Raises NotAlone."""
    run = magic.runs.get(exercise.id)
    if run is None or not run.python:
        return answer
    values: dict[str, Any] = {"__name__": "__main__"}
    values |= {name: value for name, value in _of_notebook().items() if name in _OF_IPYTHON}
    try:
        with capture_output():
            for statement in needed(_relied_on(exercise.id), run.python):
                if not statement.startswith("%"):
                    exec(statement, values)
            alone: Any = magic.run_python(run.python, run.file, values, exercise.function)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise NotAlone(
            f"Run by itself, the cell of {exercise.id} ends in\n{_line(error, run)}{told}{missing(told)}"
        ) from None
    found: Answer = alone
    return found


def missing(failure: str) -> str:
    """Say which name of another cell an answer lacks by what its check has told; "" if it lacks none."""
    found = [name for name in _UNKNOWN.findall(failure) if name in _of_notebook()]
    if not found:
        return ""
    return (
        f"\nAnother cell of this notebook makes {found[0]}. The grader has the cell of the answer and the "
        f"course's own imports alone: write what it needs of {found[0]} into the cell, too."
    )


@cache
def _relied_on(exercise: str) -> tuple[str, ...]:
    """Return the statements of the course that an answer may rely on."""
    try:
        found = [setups(path) for path in catalog.notebooks(catalog.shipped())]
    except catalog.NoNotebook:
        return ()
    return next((each[exercise] for each in found if exercise in each), ())


def _of_notebook() -> dict[str, Any]:
    here = cell.shell()
    return here.user_ns if here else {}


def _line(error: BaseException, run: CellRun) -> str:
    """Name the cell's line that an error comes from."""
    trace, line = error.__traceback__, None
    while trace:
        if trace.tb_frame.f_code.co_filename == run.file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "
