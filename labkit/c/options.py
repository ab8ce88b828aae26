"""The C compiler's options on the first line of a `%%c` cell, read here alone, for notebooks and the grader.

The answer to an exercise has only options that change the code or the messages: others read or write files,
load plugins or link.
"""

import re
from collections.abc import Sequence

from simt.compiler.options import MACRO, OptionError, grouped

_OFTEN_USED = "-D TILE=16, -O2, -ffast-math, -fopenmp, -march=native"
_WITH_A_VALUE = ("-D", "-U", "-I", "-o")
_SAME = {"-lpthread": "-pthread"}  # of which every system has the second
# What a student passes to a compiler in a terminal, and labkit does by itself.
_NEEDLESS = re.compile(r"-(?:c|S|E|o.*|shared|rdynamic)")
_IN_ANSWERS = (
    r"-O(?:[0-3sg]|fast)?",
    r"--?std=(?:c|gnu|iso)[0-9a-z:]+",
    r"-U[A-Za-z_]\w*",
    r"-(?:g[0-3]?|ggdb[0-3]?|w|l[mc]|pthread|pedantic|pedantic-errors|pipe)",
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
)


def read(words: Sequence[str], in_an_answer: bool) -> tuple[list[str], list[str]]:
    """Return the words that are no options, and the options, -D X as -DX. Raises OptionError."""
    names, options = [], []
    for group in grouped(words, _WITH_A_VALUE):
        if not group[0].startswith("-"):
            names.append(group[0])
            continue
        option = _SAME.get(group[0], "".join(group))
        if _NEEDLESS.fullmatch(group[0]):
            raise OptionError(f"{' '.join(group)} is needless: labkit builds the cell by itself.")
        if option.startswith("-D"):
            if not MACRO.fullmatch(option[2:].strip()):
                raise OptionError(f"-D wants NAME=VALUE, and {option[2:]!r} is none.")
            option = f"-D{option[2:].strip()}"
        elif in_an_answer and not any(re.fullmatch(form, option, re.ASCII) for form in _IN_ANSWERS):
            raise OptionError(f"{option} is no option that may be used here. Often used are {_OFTEN_USED}.")
        options.append(option)
    return names, options
