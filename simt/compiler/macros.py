"""The macros and constants of a CUDA source, and the whole-number arithmetic that is written with them.

The arithmetic is + - * /, ceil(), min() and max() of whole numbers, macros, constants, given sizes, and
sizeof() of the types in SIZES; T is the type that the macro DTYPE names. `/` (or `//`) drops the remainder,
as in C, but is exact in ceil().

A source may come from a student. So nothing but this arithmetic is ever evaluated, each macro once; texts,
depth and numbers are limited; and the time that a source takes is in proportion to its length.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from math import ceil
from typing import Any

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(ifndef|define)[ \t]+(\w+)(?:[ \t]+(.*))?")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BEFORE, _CONSTANT = (
    re.compile(r"[}()>]|#[^\n]*"),
    {"const", "constexpr", "enum"},
)  # what a declaration follows
_WHOLE = re.compile(r"[\w\s()+*/-]+")
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")  # of a number in C
_COMMENT = re.compile(r"//|/\*")
_OPTION = re.compile(r"(?:-D|--define-macro=) *(\w+)(?:=(.*))?")
MOST_TEXT, MOST_LEVELS, MOST_NUMBER = 500, 30, 2**63  # characters of a line or macro; of brackets and macros
SHOWN, MOST_NAMES = 80, 20  # characters and names in a message
_ARITHMETIC = (
    "whole numbers, sizes, macros, + - * /, ceil(), min(), max() and sizeof() are all that may stand there"
)
SIZES = {  # bytes per element
    **{"double": 8, "float": 4, "int": 4, "tf32": 4},
    **{"half": 2, "short": 2, "__nv_bfloat16": 2, "__nv_fp8_e4m3": 1, "char": 1},
}


def macros_of(options: Sequence[str]) -> dict[str, str]:
    """Return the macros among a compiler's options: -DTILE=16 is TILE: 16."""
    found = (_OPTION.fullmatch(option) for option in options)
    return {option[1]: option[2] or "1" for option in found if option}


def _defined(lines: Sequence[str], given: Mapping[str, int | str]) -> dict[str, int | str]:
    """Return the macros of the source; one in #ifndef takes the value that was `given`, if there is one."""
    found, guard = dict(given), ""  # the name in the #ifndef of the line above
    for line in lines:
        directive = _DIRECTIVE.match(line)
        kind, name, text = directive.groups() if directive else ("", "", "")
        value = _COMMENT.split(text, maxsplit=1)[0].strip() if kind == "define" and text else ""
        if value and (guard != name or name not in given):
            found[name] = value
        guard = name if kind == "ifndef" else ""
    return found


def _constants(source: str) -> dict[str, str]:
    """Return what `const`, `constexpr` and `enum` give names to; of several of one name the first.

    What looks like no whole number, such as threadIdx.x, is left out.
    """
    found: dict[str, str] = {}
    for statement in _COMMENTS.sub(" ", source).split(";"):
        head, _, values = statement.partition("=")
        words = _BEFORE.split(head)[-1].split()
        if not _CONSTANT.isdisjoint(words):
            for part in f"{words[-1]}={values}".rstrip("} \n").split(","):
                name, _, value = part.partition("=")
                if _WHOLE.fullmatch(value):
                    found.setdefault(name.strip(), value.strip())
    return found


def names_of(source: str, macros: Mapping[str, int | str], sizes: Mapping[str, int] | None = None) -> Names:
    """Return the macros and constants of a source that is compiled with `macros`, and sizes beside them."""
    known = {**_defined(source.split("\n"), macros), **(sizes or {})}
    return Names(known | {name: text for name, text in _constants(source).items() if name not in known})


def _parsed(text: str) -> Any:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise ValueError(f"this is no arithmetic; {_ARITHMETIC}.") from None


class Names:
    """Sizes and macros, and what has been worked out of them."""

    def __init__(self, known: Mapping[str, int | str]) -> None:
        self._known = known
        self._values: dict[str, Fraction | ValueError] = {}

    def text(self, name: str) -> str:
        """Return what a macro stands for; the name itself where it is none."""
        return str(self._known.get(name, name))

    def whole(self, text: str) -> int:
        """Evaluate arithmetic of whole numbers, as a source has it. Raises ValueError."""
        return int(self.value(_parsed(_SUFFIX.sub(r"\1", text))))

    def several(self, text: str) -> list[int]:
        """Evaluate several of them with commas between. Raises ValueError."""
        inside = _parsed(f"({text},)")
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]  # as (1) if (2,)
        return [int(self.value(part)) for part in parts]

    def value(self, node: ast.AST, exact: bool = False, level: int = 0) -> Fraction:
        """Evaluate an expression; a division that is not `exact` drops the remainder. Raises ValueError."""
        if level > MOST_LEVELS:
            raise ValueError(f"brackets and macros are nested more than {MOST_LEVELS} times.")
        found = self._value(node, exact, level + 1)
        if max(abs(found.numerator), found.denominator) > MOST_NUMBER:
            raise ValueError(f"{_shown(node)} is larger than any launch.")
        return found

    def _value(self, node: ast.AST, exact: bool, level: int) -> Fraction:
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return Fraction(number)
            case ast.Name(id=name):
                return self._named(name, level)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand, exact, level)
            case ast.Call(func=ast.Name(id="ceil"), args=[inside], keywords=[]):
                return Fraction(ceil(self.value(inside, True, level)))
            case ast.Call(func=ast.Name(id="min" | "max" as least), args=[*several], keywords=[]) if several:
                return (min if least == "min" else max)(self.value(each, exact, level) for each in several)
            case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=kind)], keywords=[]):
                return Fraction(self._bytes(kind))
            case ast.BinOp(left=left, op=operator, right=right):
                a, b = self.value(left, exact, level), self.value(right, exact, level)
                match operator:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.Div() | ast.FloorDiv() if b == 0:
                        raise ValueError(f"{_shown(node)} divides by 0.")
                    case ast.Div() | ast.FloorDiv():
                        return a / b if exact and isinstance(operator, ast.Div) else Fraction(int(a / b))
        raise ValueError(f"what is {_shown(node)!r}? {_ARITHMETIC[0].upper()}{_ARITHMETIC[1:]}.")

    def _bytes(self, kind: str) -> int:
        """Return the bytes of a type, or of the one that DTYPE or another macro stands for."""
        named = self.text(kind)
        meant = self.text("DTYPE") if named == "T" else named
        if meant not in SIZES:
            raise ValueError(f"nothing says how large {meant} is. Known are T and {', '.join(SIZES)}.")
        return SIZES[meant]

    def _named(self, name: str, level: int) -> Fraction:
        """Evaluate a size or macro, once. A macro's text is evaluated in turn, without the macro itself."""
        if name not in self._known:
            names = [*self._known][:MOST_NAMES]
            known = ", ".join(each[:SHOWN] for each in names) + ", …" * (len(self._known) > MOST_NAMES)
            raise ValueError(
                f"nothing says what {name} is. Known are {known}. A macro is made by a line "
                f"`#define {name} 32`, a constant by `constexpr int {name} = 32;`."
            )
        text = self._known[name]
        if isinstance(text, int):
            return Fraction(text)
        if name not in self._values:
            shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
            self._values[name] = ValueError(f"{name} is {shown!r}, which is no whole number.")
            with suppress(ValueError):
                if len(text) <= MOST_TEXT:
                    self._values[name] = self.value(_parsed(_SUFFIX.sub(r"\1", text)), level=level)
        found = self._values[name]
        if isinstance(found, ValueError):
            raise found
        return found


def _shown(node: ast.AST) -> str:
    """Return an expression's text, for a message."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):  # it nests deep, or has a number of thousands of digits
        return "…"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
