"""The line of a kernel's source that says how it is launched, evaluated for a problem.

    // launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K

Each pair of brackets holds one to three sizes, made of whole-number arithmetic (+ - * /, ceil(), min() and
max()), the problem's sizes (M, N, K, or rows, cols), macros, and constants:
simt.compiler.macros evaluates it.
The text after the semicolon is for the reader.
"""

import re
from collections.abc import Sequence

from labkit.kernels.problem import Problem
from simt.common.errors import LaunchError
from simt.common.limits import Dim3, as_dim3, check_launch
from simt.compiler.macros import MOST_TEXT, Names, names_of

FORM = "// launch: block (16, 16), grid (ceil(N/16), ceil(M/16));"
_LINE = re.compile(r"[ \t]*//+[ \t]*launch[ \t]*:", re.IGNORECASE)
_PARTS = re.compile(r"//+\s*launch\s*:\s*block\s*\((.+)\)\s*,\s*grid\s*\(([^;]+)\)\s*(?:;.*)?", re.IGNORECASE)


class LaunchLineError(LaunchError):
    """The source has no valid `// launch:` line; the message says why."""


def launch_of(source: str, problem: Problem, **macros: int | str) -> tuple[Dim3, Dim3]:
    """Return grid and block for `problem`, from the line `// launch:` of a kernel's source.

    `macros` are those that the kernel was compiled with; the others are read from the source. Raises
    LaunchLineError where there is no such line or it cannot be evaluated, and LaunchError where no GPU takes
    the launch.
    """
    lines = source.split("\n")
    line = _only_line(lines)
    text = lines[line - 1].strip()
    if len(text) > MOST_TEXT:
        raise LaunchLineError(
            f"line {line} says how the kernel is launched in {len(text)} characters; it may have {MOST_TEXT}."
        )
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise LaunchLineError(
            f"line {line} does not say how the kernel is launched:\n{line:>5} | {text}\n"
            f"It should have this form, with one to three sizes in each bracket:\n        {FORM}"
        )
    names = names_of(source, macros, problem.sizes)
    block, grid = (
        _evaluated(name, sizes, names, line)
        for name, sizes in zip(("block", "grid"), parts.groups(), strict=True)
    )
    try:
        check_launch("kernel", grid, block)
    except LaunchError as error:
        raise LaunchError(f"{error}\n{line:>5} | {text}\nfor {problem}") from None
    return grid, block


def _only_line(lines: Sequence[str]) -> int:
    """Return the number of the line `// launch:`."""
    numbers = [number for number, text in enumerate(lines, 1) if _LINE.match(text)]
    if not numbers:
        raise LaunchLineError(
            "No line says how the kernel is launched. Put one like this above it, with your sizes:\n"
            f"        {FORM}"
        )
    if len(numbers) > 1:
        first, second, *_ = numbers
        raise LaunchLineError(
            f"Lines {first} and {second} both say how the kernel is launched. Keep one of them."
        )
    return numbers[0]


def _evaluated(what: str, text: str, names: Names, line: int) -> Dim3:
    """Evaluate the sizes in one pair of brackets."""
    try:
        sizes = names.several(text)
        if len(sizes) > 3:
            raise ValueError(f"these are {len(sizes)} sizes; there are at most three: x, y and z.")
        return as_dim3(sizes, what)
    except ValueError as error:
        raise LaunchLineError(f"line {line}: {what} ({text}): {error}") from None
