"""The first line of an answer, read as labkit.magic reads it and written anew.

IPython takes the lines below a `%%` as they are, but expands `{…}` and `$name` in the line itself: Python
would run in a kernel that is meant for CUDA. And a compiler's option may read or write files. So the line is
parsed, what is in it must be known to be harmless, and it is put together again from its parts.
"""

import re
import shlex

from IPython.core.error import UsageError

from labkit.course.exercise import ASKED, Exercise
from labkit.magic import LabMagics

_ANSWER = re.compile(r"%%(?P<magic>cuda|c|answer) (?P<line>.*)")
_MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=.*)?", re.ASCII)
_EXPANDED = "{}$"

_BOTH = (
    r"-O[0-3]",
    r"--?std=(?:c|gnu)(?:\+\+)?[0-9a-z]+",
    r"-U[A-Za-z_]\w*",
)
_OPTIONS = {
    "cuda": (
        *_BOTH,
        r"--?(?:use_fast_math|extra-device-vectorization|restrict|generate-line-info|disable-warnings)",
        r"-(?:lineinfo|w)",
        r"--?(?:ftz|prec-div|prec-sqrt|fmad)=(?:true|false)",
        r"--?maxrregcount=\d+",
    ),
    "c": (
        *_BOTH,
        r"-(?:Ofast|Os|Og|g|w|lm|pthread|pedantic)",
        r"-W[a-z][a-z0-9+-]*(?:=\d+)?",
        r"-m(?:arch|tune|cpu)=[a-z0-9.+-]+",
        r"-mprefer-vector-width=\d+",
        r"-m(?:no-)?(?:avx|sse|fma|bmi|f16c|popcnt|lzcnt)[a-z0-9.]*",
        r"-ffp-contract=(?:fast|on|off)",
        # of -f only what changes the code: others, such as -fdump-tree-all, write files
        r"-f(?:no-)?(?:openmp(?:-simd)?|fast-math|math-errno|trapping-math|signed-zeros|rounding-math|lto|wrapv"
        r"|(?:unsafe|associative|reciprocal)-math(?:-optimizations)?|finite-math-only|strict-aliasing"
        r"|(?:unroll|peel|split|interchange|prefetch)-(?:all-)?loop(?:s|-arrays)?|omit-frame-pointer"
        r"|(?:tree-|slp-|tree-loop-|tree-slp-)?vectorize|inline(?:-functions)?|PIC|pic)",
    ),
}
_EXAMPLES = {
    "cuda": "-D TILE=16, --use_fast_math",
    "c": "-D TILE=16, -O2, -ffast-math, -fopenmp, -march=native",
}


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
        return []
    try:
        magic = LabMagics.cuda if exercise.magic == "cuda" else LabMagics.c
        given, others = magic.parser.parse_known_args(shlex.split(line))  # type: ignore[union-attr]
    except (UsageError, ValueError) as error:
        raise Refused(f"{_quoted(line, exercise)}: {error}") from None
    if given.name != exercise.id:
        raise Refused(f"{_quoted(line, exercise)}: it names {given.name}, not {exercise.id}.")
    for word in others:
        if not any(re.fullmatch(form, word, re.ASCII) for form in _OPTIONS[exercise.magic]):
            raise Refused(
                f"{_quoted(line, exercise)}: {word} is no option that may be used here. "
                f"Often used are {_EXAMPLES[exercise.magic]}."
            )
    for macro in given.D:
        if not _MACRO.fullmatch(macro):
            raise Refused(f"{_quoted(line, exercise)}: -D wants NAME=VALUE, and {macro!r} is none.")
    instance = (
        [f"--name-expression={given.name_expression}"] if getattr(given, "name_expression", None) else []
    )
    return [*(f"-D{macro}" for macro in given.D), *instance, *others]


def _quoted(line: str, exercise: Exercise) -> str:
    """Quote the line, as an error begins with it."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return f"%%{exercise.magic} {shown[:100]}"
