"""Whose fault an error is that is raised while an answer is judged.

It is the answer's where a value of the answer's own can cause it, or its sandbox raises it; the machine's for
a few causes; and else the grader's. The answer pays for the first alone.

Students read a sentence about it. Tracebacks and paths of the grader are for instructors alone.
"""

import errno
import os
import re
import site
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from numbers import Number
from pathlib import Path
from traceback import format_exc
from types import NoneType
from typing import Any

import numpy as np
import psutil

from grader.sandbox.process import NoSandbox
from grader.sandbox.wire import Callback, Opaque
from labkit.course.criteria.undisturbed import Disturbed
from labkit.course.exercise import Exercise, Unmet
from labkit.course.feedback import Feedback
from labkit.course.reimported import Elsewhere, Raised
from labkit.devices.select import NoGpu
from labkit.paths import PACKAGE
from simt.common.compare import Mismatch
from simt.common.errors import SimtError
from simt.common.occupancy import Gpu
from simt.programs.toolkit import NoCompiler

LITTLE_BYTES = 2**29  # of memory that is left: with more of it, an array that does not fit is the answer's
MOST_TOLD = 4000  # characters of why an answer fails
AGAIN = "The grader or its machine failed, not this answer. The answer needs to be graded again."
SHORT = "The grading machine was short of {}. The answer needs to be graded again."

# What the machine lacks when the system refuses a call with one of these.
_LACKING = {
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes",
    errno.ENFILE: "open files",
    errno.EMFILE: "open files",
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space",
    errno.EIO: "a working disk",
}
# Errors that no value of an answer makes right code raise.
_MISTAKES = (NameError, ImportError, SyntaxError, NotImplementedError)
_PLAIN = (Number, str, bytes, list, tuple, dict, np.ndarray, np.generic, NoneType)
_VALUES = (*_PLAIN, Opaque, Callback, Gpu)  # that cross the border of a sandbox
_TOLD = (Unmet, Mismatch, SimtError, NoGpu)  # what a criterion says of an answer
_WORD = re.compile(r"[A-Za-z_]\w{0,60}")
NO_THREAD = "can't start new thread"  # as Python has it where the system's limit of tasks is reached


class Mistake(Exception):
    """The grader's own code is wrong, whatever the answer; its cause says how."""


def ours(error: BaseException) -> str:
    """Return why the grader could not judge, in a sentence; "" if the answer itself is the cause."""
    if isinstance(error, Disturbed):
        return str(error)
    if isinstance(error, NoCompiler):
        return f"The grading machine cannot build CUDA programs. {error}"
    if isinstance(error, NoSandbox | Mistake):
        return AGAIN
    if isinstance(error, MemoryError) and psutil.virtual_memory().available < LITTLE_BYTES:
        return SHORT.format(_LACKING[errno.ENOMEM])
    if isinstance(error, OSError) and error.errno in _LACKING:
        return SHORT.format(_LACKING[error.errno])
    return ""


def is_mistake(error: BaseException) -> bool:
    """Tell whether the grader's own code raises this by mistake, whatever values an answer hands out."""
    if isinstance(error, AttributeError):
        return not isinstance(error.obj, _VALUES)
    return isinstance(error, (Mistake, *_MISTAKES))


def strange(error: BaseException) -> str:
    """Say in a sentence for a student that an answer makes judging raise this."""
    if NO_THREAD in str(error):  # before the sandbox's watch has looked
        return "It started too many processes and threads and was stopped."
    kind = error.kind if isinstance(error, Raised) else type(error).__name__
    named = f" ({kind})" if _WORD.fullmatch(kind) else ""
    return (
        f"Judging this answer ended in an error{named}: it does or returns something that the check cannot "
        "handle. If labkit.check accepts it in your notebook, ask your instructor, who can read the error."
    )


def guarded(exercise: Exercise, errors: list[str]) -> Exercise:
    """Return the exercise with criteria that say whose fault an error is that they raise unforeseen.

    An answer in Python may return values of any form, and so fails what they make raise; `errors` gets the
    tracebacks. All else is read as what it has to be before a criterion has it. So other errors are Mistakes.
    """

    def guard(test: Callable[[Any], None]) -> Callable[[Any], None]:
        def tried(answer: Any) -> None:
            before = _heard(answer)
            try:
                test(answer)
            except _TOLD:
                raise
            except Exception as error:
                if ours(error):
                    raise
                if not isinstance(error, Raised) and (is_mistake(error) or _heard(answer) == before):
                    raise Mistake from error
                errors.append(format_exc())
                raise Unmet(strange(error)) from None

        return tried

    criteria = tuple(replace(each, test=guard(each.test)) for each in exercise.criteria)
    return replace(exercise, criteria=criteria)


def _heard(answer: Any) -> int:
    """Return how many values of any form have come from the answer."""
    return answer.heard if isinstance(answer, Elsewhere) else 0


def fit(feedback: Feedback) -> Feedback:
    """Make a failure fit for a student: short, as it may hold what the answer prints, and without folders of
    this machine.
    """
    told = feedback.failure
    if told is None:
        return feedback
    told = without_folders(told[: 4 * MOST_TOLD])
    return replace(feedback, failure=told if len(told) <= MOST_TOLD else f"{told[:MOST_TOLD]} …")


def without_folders(text: str) -> str:
    """Return a text in which files of this machine have no folders but those of the package."""
    for folder in _folders():
        text = text.replace(f"{folder}/", "")
    return text


@cache
def _folders() -> list[str]:
    """Return the folders of the grader that may be told in a message, the innermost first."""
    names = {
        *(Path(each) for each in (*site.getsitepackages(), site.getusersitepackages())),
        PACKAGE.parent,
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path.home(),
        Path(tempfile.gettempdir()),
        Path(os.path.realpath(sys.executable)).parent,
    }
    told = {str(path) for path in names} - {"/", "/usr", "/usr/bin"}
    return sorted(told, key=len, reverse=True)
