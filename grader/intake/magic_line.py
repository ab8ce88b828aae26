"""The first line of an answer, read as labkit.magic reads it and written anew.

IPython takes the lines below a `%%` as they are, but expands `{…}` and `$name` in the line itself: Python
would run in a kernel that is meant for CUDA. And a compiler's option may read or write files. So the line is
parsed, what is in it must be known to be harmless, and it is put together again from its parts.
"""

import re
import shlex

from IPython.core.error import UsageError

from labkit.course.exercise import ASKED, Exercise
from labkit.magic import read_line
from labkit.program_magic import read_line as read_program_line
from simt.compiler.options import NAME_EXPRESSION

_ANSWER = re.compile(r"%%(?P<magic>cuda|c|answer|program) (?P<line>.*)")
_EXPANDED = "{}$"
# What an answer may ask of nvcc: options that read no file, run no program, and write none.
_OF_NVCC = re.compile(
    r"-O[0-3]|-std=c\+\+\d\d|--?use_fast_math|-lineinfo|-g|-G|-W\w*|-arch=\w+|-l(cublas|curand)|"
    r"--?(extended-lambda|expt-relaxed-constexpr)|-[DU]\w+(=[\w.+-]*)?|--(fmad|ftz)=(true|false)"
)


class Refused(ValueError):
    """An answer is not run; the message tells the student why."""


def rewritten(source: str, exercise: Exercise) -> str:
    """Return the answer with a magic line of our own making. Raises Refused."""
    line, _, body = source.partition("\n")
    found = _ANSWER.fullmatch(line)
    if found is None or found["magic"] != exercise.magic:
        is_one = ASKED[found["magic"]] if found else "no answer"
        raise Refused(
            f"This is {is_one}, and {exercise.id} asks for {ASKED[exercise.magic]}: "
            f"begin the cell with %%{exercise.magic} {exercise.id}."
        )
    if not body.strip():
        raise Refused("The cell has nothing below its magic line.")
    return f"%%{exercise.magic} {shlex.join([exercise.id, *_options(found['line'], exercise)])}\n{body}"


def _options(line: str, exercise: Exercise) -> list[str]:
    """Return the line's options as words that are known to be harmless. Raises Refused."""
    if not line.isprintable() or set(_EXPANDED) & set(line):
        raise Refused(
            f"{_quoted(line, exercise)}: it may not have {' '.join(_EXPANDED)} or unprintable characters."
        )
    if exercise.magic == "answer":
        if line.strip() != exercise.id:
            raise Refused(f"{_quoted(line, exercise)}: that is not the id of an exercise alone.")
        # The sandbox has no exercises in which the magic could look it up.
        return [f"--function={exercise.function}"] if exercise.function else []
    if exercise.magic == "program":
        return _of_program(line, exercise)
    try:
        read = read_line(exercise.magic, line)
    except UsageError as error:
        raise Refused(str(error)) from None
    if read.name != exercise.id:
        raise Refused(f"{_quoted(line, exercise)}: it names {read.name}, not {exercise.id}.")
    return [*read.options, *(f"{NAME_EXPRESSION}={each}" for each in read.expressions)]


def _of_program(line: str, exercise: Exercise) -> list[str]:
    """Return the options of a whole program, which is built alone: the judge runs it. Raises Refused."""
    try:
        read = read_program_line(line)
    except UsageError as error:
        raise Refused(str(error)) from None
    if read.name != exercise.id:
        raise Refused(f"{_quoted(line, exercise)}: it names {read.name or 'nothing'}, not {exercise.id}.")
    for option in read.options:
        if not _OF_NVCC.fullmatch(option):
            raise Refused(
                f"{_quoted(line, exercise)}: the grader does not take {option[:50]!r}. Leave it out; -O3, "
                "-DNAME=VALUE and -std=c++20, for example, are fine."
            )
    return [*read.options, "--build"]


def _quoted(line: str, exercise: Exercise) -> str:
    """Quote the line, as an error begins with it."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return f"%%{exercise.magic} {shown[:100]}"
