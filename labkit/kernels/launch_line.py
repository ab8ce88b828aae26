"""The line of a kernel's source that says how it is launched, evaluated for a problem.

    // launch: block (TILE, TILE), grid (ceil(N/TILE), ceil(M/TILE)); any M, N, K

Each pair of brackets holds one to three sizes, made of whole-number arithmetic (+ - * / and ceil()), the
problem's sizes (M, N, K, or rows, cols) and macros. `/` (or `//`) drops the remainder, as in C, but is exact
in ceil(). The text after the semicolon is for the reader. The line may come from a student, so nothing but
this arithmetic is ever evaluated.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from labkit.core.errors import LaunchError
from labkit.core.limits import Dim3, as_dim3, check_launch
from labkit.kernels.problem import Problem

FORM = "// launch: block (16, 16), grid (ceil(N/16), ceil(M/16));"
_LINE = re.compile(r"^[ \t]*//+[ \t]*launch[ \t]*:", re.MULTILINE | re.IGNORECASE)
_PARTS = re.compile(r"//+\s*launch\s*:\s*block\s*\((.+)\)\s*,\s*grid\s*\(([^;]+)\)\s*(?:;.*)?", re.IGNORECASE)
_DEFINE = re.compile(
    r"^[ \t]*(?:#[ \t]*ifndef[ \t]+(\w+)[^\n]*\n[ \t]*)?#[ \t]*define[ \t]+(\w+)[ \t]+(.+?)[ \t]*(?://.*|/\*.*)?$",
    re.MULTILINE,
)
_OPTION = re.compile(r"(?:-D|--define-macro=) *(\w+)(?:=(.*))?")
_ARITHMETIC = "whole numbers, sizes, macros, + - * / and ceil() are all that may stand there"


class LaunchLineError(LaunchError):
    """The source has no valid `// launch:` line; the message says why."""


def launch_of(source: str, problem: Problem, **macros: int | str) -> tuple[Dim3, Dim3]:
    """Return grid and block for `problem`, from the line `// launch:` of a kernel's source.

    `macros` are those that the kernel was compiled with; the others are read from the source. Raises
    LaunchLineError where there is no such line or it cannot be evaluated, and LaunchError where no GPU takes
    the launch.
    """
    line = _only_line(source)
    names = _defined(source, macros) | problem.sizes
    text = source.splitlines()[line - 1].strip()
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise LaunchLineError(
            f"line {line} does not say how the kernel is launched:\n{line:>5} | {text}\n"
            f"It should have this form, with one to three sizes in each bracket:\n        {FORM}"
        )
    block, grid = (
        _evaluated(name, sizes, names, line)
        for name, sizes in zip(("block", "grid"), parts.groups(), strict=True)
    )
    try:
        check_launch("kernel", grid, block)
    except LaunchError as error:
        raise LaunchError(f"{error}\n{line:>5} | {text}\nfor {problem}") from None
    return grid, block


def macros_of(options: Sequence[str]) -> dict[str, str]:
    """Return the macros among a compiler's options: -DTILE=16 is TILE: 16."""
    found = (_OPTION.fullmatch(option) for option in options)
    return {option[1]: option[2] or "1" for option in found if option}


def _only_line(source: str) -> int:
    """Return the number of the line `// launch:`."""
    numbers = [source.count("\n", 0, match.start()) + 1 for match in _LINE.finditer(source)]
    if not numbers:
        raise LaunchLineError(
            "No line says how the kernel is launched. Put one like this above it, with your sizes:\n"
            f"        {FORM}"
        )
    if len(numbers) > 1:
        raise LaunchLineError(
            f"Lines {' and '.join(map(str, numbers))} both say how the kernel is launched. Keep one of them."
        )
    return numbers[0]


def _defined(source: str, given: Mapping[str, int | str]) -> dict[str, int | str]:
    """Return the macros of the source; one in #ifndef takes the value that was `given`, if there is one."""
    found = dict(given)
    for guard, name, value in _DEFINE.findall(source):
        if guard != name or name not in given:
            found[name] = value
    return found


def _evaluated(what: str, text: str, names: Mapping[str, int | str], line: int) -> Dim3:
    """Evaluate the sizes in one pair of brackets."""
    try:
        sizes = [int(_value(part, names)) for part in _parsed(f"({text},)").elts]
        if len(sizes) > 3:
            raise ValueError(f"these are {len(sizes)} sizes; there are at most three: x, y and z.")
        return as_dim3(sizes, what)
    except ValueError as error:
        raise LaunchLineError(f"line {line}: {what} ({text}): {error}") from None


def _parsed(text: str) -> Any:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise ValueError(f"this is no arithmetic; {_ARITHMETIC}.") from None


def _value(node: ast.AST, names: Mapping[str, int | str], exact: bool = False) -> Fraction:
    """Evaluate an expression; a division that is not `exact` drops the remainder. Raises ValueError."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return Fraction(number)
        case ast.Name(id=name):
            return _named(name, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, exact)
        case ast.Call(func=ast.Name(id="ceil"), args=[inside], keywords=[]):
            return Fraction(ceil(_value(inside, names, exact=True)))
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _value(left, names, exact), _value(right, names, exact)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div() | ast.FloorDiv() if b == 0:
                    raise ValueError(f"{ast.unparse(node)} divides by 0.")
                case ast.Div() | ast.FloorDiv():
                    return a / b if exact and isinstance(operator, ast.Div) else Fraction(int(a / b))
    raise ValueError(f"what is {ast.unparse(node)!r}? {_ARITHMETIC[0].upper()}{_ARITHMETIC[1:]}.")


def _named(name: str, names: Mapping[str, int | str]) -> Fraction:
    """Evaluate a size or macro. A macro's text is evaluated in turn, without the macro itself."""
    if name not in names:
        known = ", ".join(names)
        raise ValueError(
            f"nothing says what {name} is. Known are {known}. A macro is made by a line `#define {name} 32`; "
            "a C++ constant is not seen here."
        )
    value = names[name]
    if isinstance(value, int):
        return Fraction(value)
    try:
        return _value(_parsed(value), {key: text for key, text in names.items() if key != name})
    except ValueError:
        raise ValueError(f"{name} is {value!r}, which is no whole number.") from None
